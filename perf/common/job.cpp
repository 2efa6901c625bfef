// SPDX-License-Identifier: Apache-2.0
// Starting and joining ranks through the public interface.
#include "perf/common/job.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "perf/common/failure.hpp"

namespace torii::perf {
namespace {

/// torii-run lies beside this program in a build tree and in ../../bin of an installed libexec/torii.
std::filesystem::path find_launcher() {
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const std::filesystem::path& candidate : {here / "torii-run", here / "../../bin/torii-run"}) {
    if (std::filesystem::exists(candidate)) return candidate;
  }
  throw Failure(kNotPossible, "--ranks needs torii-run, which is neither in " + here.string() + " nor in ../../bin");
}

}  // namespace

void start_ranks(int ranks, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {find_launcher(), "-n", std::to_string(ranks), "--",
                                    std::filesystem::read_symlink("/proc/self/exe")};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv(pointers[0], pointers.data());
  throw Failure(kNotPossible, "cannot start " + words[0] + ": " + std::strerror(errno));
}

bool inside_job() { return std::getenv("TORII_RANK") != nullptr; }

bool speaks() {
  const char* rank = std::getenv("TORII_RANK");
  return rank == nullptr || std::strcmp(rank, "0") == 0;
}

Job::Job(const std::string& settings, torii_exchange exchange, int rank, int ranks) {
  torii_context_options context_options{};
  context_options.size = sizeof(context_options);
  context_options.rank = rank;
  context_options.ranks = ranks;
  context_options.exchange = exchange;
  context_options.settings = settings.c_str();
  check(torii_context_create(&context_options, &context_), "cannot join the job");
  rank_ = torii_context_rank(context_);
  ranks_ = torii_context_ranks(context_);
  torii_team_options control_options{};
  control_options.size = sizeof(control_options);
  control_options.algorithm = "auto";
  control_options.determinism = "run";
  check(torii_team_create(context_, &control_options, &control_), "cannot make the control team");
  check(torii_team_create(context_, nullptr, &team_), "cannot make the team");
}

Job::~Job() {
  torii_team_destroy(team_);
  torii_team_destroy(control_);
  torii_context_destroy(context_);
}

std::vector<int64_t> Job::gather(std::span<const int64_t> mine) const {
  std::vector<int64_t> all(mine.size() * static_cast<size_t>(ranks_));
  check(torii_all_gather(control_, mine.data(), all.data(), mine.size(), TORII_I64), "cannot gather times");
  return all;
}

void Job::gather_bytes(const void* mine, void* all, size_t bytes) const {
  check(torii_all_gather(control_, mine, all, bytes, TORII_U8), "cannot gather results");
}

void Job::broadcast(void* data, size_t bytes) const {
  check(torii_broadcast(control_, data, bytes, TORII_U8, 0), "cannot broadcast");
}

int64_t Job::sum(int64_t mine) const {
  const std::vector<int64_t> all = gather({&mine, 1});
  return std::accumulate(all.begin(), all.end(), int64_t{0});
}

int64_t Job::max(int64_t mine) const {
  const std::vector<int64_t> all = gather({&mine, 1});
  return *std::max_element(all.begin(), all.end());
}

void Job::barrier() const { check(torii_barrier(control_), "barrier between measurements"); }

}  // namespace torii::perf
