// SPDX-License-Identifier: Apache-2.0
// Reads lists and sizes, and refuses what cannot be measured before anything is.
#include "tools/torii-info/tune_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "collectives/selection/catalogue.hpp"
#include "runtime/base/numbers.hpp"
#include "runtime/base/status.hpp"
#include "runtime/bootstrap/environment.hpp"
#include "tools/torii-info/whole_file.hpp"

namespace torii::tools {
namespace {

constexpr int kTunedRanksMax = 1024;
constexpr std::size_t kSizeMax = std::size_t{1} << 32;
/// Settings that decide what runs, which is what is compared.
constexpr const char* kDecided[] = {"ALGORITHM", "SEGMENT",     "SLOTS",    "WINDOW",
                                    "TOPOLOGY",  "DETERMINISM", "RANK_MAP", "TRANSPORT"};

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words(1);
  for (const char c : list) {
    if (c == ',') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

std::size_t read_size(const char* flag, const std::string& text) {
  const auto bytes = parse_bytes(text);
  if (!bytes || *bytes == 0 || *bytes > kSizeMax) {
    invalid(fmt::format("{} is '{}'; it must be a size from 1 to 4G, with K, M or G (1024)", flag, text));
  }
  return *bytes;
}

std::vector<std::size_t> read_sizes(const TuneRequest& request) {
  const std::size_t least = read_size("-b", request.least);
  const std::size_t most = read_size("-e", request.most);
  if (least > most) invalid(fmt::format("-e {} is less than -b {}", request.most, request.least));
  std::vector<std::size_t> sizes;
  for (std::size_t bytes = least; bytes <= most; bytes *= request.factor) sizes.push_back(bytes);
  return sizes;
}

void require_algorithms(const std::string& list) {
  for (const std::string& word : words_of(list)) {
    if (find_algorithm(word) != nullptr) continue;
    invalid(fmt::format("--algorithms: '{}' is no algorithm; those of the catalogue are {}", word,
                        fmt::join(algorithm_names(), ", ")));
  }
}

/// Ranks measure what the library would choose: what the user forces is taken out of the environment, and said.
void clear_setting(const char* setting, const std::string& why) {
  const std::string variable = std::string("TORII_") + setting;
  const char* const value = std::getenv(variable.c_str());
  if (value == nullptr) return;
  std::fprintf(stderr, "torii-info: %s=%s is ignored: %s\n", variable.c_str(), value, why.c_str());
  unsetenv(variable.c_str());
}

}  // namespace

std::vector<int> read_ranks(const std::string& text, int cpus, bool oversubscribe) {
  std::vector<int> list;
  if (text.empty()) {
    if (cpus < 2) {
      throw Error(
          Status::unsupported,
          fmt::format("{} CPU may be used here (taskset, cpusets, CPU quotas and mpirun's binding count): ranks "
                      "would take turns; --ranks 2 --oversubscribe measures that",
                      cpus));
    }
    for (int ranks = 2; ranks < std::min(cpus, kTunedRanksMax); ranks *= 2) list.push_back(ranks);
    list.push_back(std::min(cpus, kTunedRanksMax));
    return list;
  }
  for (const std::string& word : words_of(text)) {
    const auto ranks = parse_number<int>(word);
    if (!ranks || *ranks < 2 || *ranks > kTunedRanksMax) {
      invalid(
          fmt::format("--ranks is '{}'; it must be a list like 2,4,8 of numbers from 2 to {}", text, kTunedRanksMax));
    }
    list.push_back(*ranks);
  }
  std::ranges::sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end());
  if (list.back() > cpus && !oversubscribe) {
    throw Error(Status::unsupported,
                fmt::format("--ranks has {}, but {} CPU{} may be used here: ranks would take turns; fewer ranks, or "
                            "--oversubscribe if jobs run so",
                            list.back(), cpus, cpus == 1 ? "" : "s"));
  }
  return list;
}

std::vector<TuneCell> read_cells(const TuneRequest& request, int ranks) {
  std::vector<TuneCell> cells;
  for (const std::size_t bytes : read_sizes(request)) {
    for (const std::string& word : words_of(request.collectives)) {
      const auto collective = parse_collective(word);
      if (!collective) invalid("--collectives: '" + word + "' is no collective; torii-info plan names them");
      const std::size_t step = sizeof(float) * static_cast<std::size_t>(has_block_per_rank(*collective) ? ranks : 1);
      const bool is_barrier = *collective == Collective::barrier;
      const TuneCell cell = {*collective, ranks, is_barrier ? 0 : std::max(bytes / step, std::size_t{1}) * step};
      if (std::ranges::find(cells, cell) == cells.end()) cells.push_back(cell);
    }
  }
  return cells;
}

void require_sense(const TuneRequest& request) {
  if (const std::string job = launched_job(); !job.empty()) {
    throw Error(Status::unsupported,
                job + " says that this process is one of several ranks; tune starts its ranks " +
                    "itself: run it alone, for instance with srun -n 1 or mpirun -n 1 --bind-to none");
  }
  if (request.check && !request.output.empty()) invalid("--check writes no table: leave out --check or -o");
  if (!request.check && !request.tune_file.empty()) {
    invalid("-o compares with the built-in table: leave --tune-file out, or use it with --check");
  }
  if (!request.check && request.passes != 0) invalid("--passes is for --check: leave it out");
  if (request.output == "-" && request.json == "-") {
    invalid("-o - and --json - both want stdout: give one of them a file");
  }
  if (!request.algorithms.empty()) require_algorithms(request.algorithms);
  for (const std::string& path : {request.output, request.raw, request.json}) require_writable(path);
}

void clear_settings(const TuneRequest& request) {
  for (const char* const setting : kDecided) {
    clear_setting(setting, "tune compares what runs without it, over shared memory");
  }
  if (!request.check) clear_setting("TUNE_FILE", "the new table is compared with the built-in one");
}

}  // namespace torii::tools
