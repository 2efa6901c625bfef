// SPDX-License-Identifier: Apache-2.0
// Sends and receives of torii and of an MPI in turn, on the same buffers: half of a round trip between ranks 0 and 1,
// and an exchange in which both send at once. Started by mpirun; torii joins through MPI_Allgather.
#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "perf/common/failure.hpp"
#include "perf/common/job.hpp"
#include "perf/common/measure.hpp"
#include "perf/common/names.hpp"
#include "perf/common/program.hpp"
#include "perf/mpi_calls.hpp"

namespace torii::perf {
namespace {

struct SendRecvOptions {
  std::vector<size_t> sizes;
  std::string json, setting;
  int blocks = 9;
};

/// One way to move the bytes of a rank to the other one.
class Way {
 public:
  explicit Way(std::string name) : name_(std::move(name)) {}
  virtual ~Way() = default;
  const std::string& name() const { return name_; }
  virtual void send(const void* from, size_t bytes, int to) = 0;
  virtual void receive(void* to, size_t bytes, int from) = 0;
  virtual void exchange(const void* mine, void* theirs, size_t bytes, int peer) = 0;
  virtual char* input() = 0;
  virtual char* result() = 0;

 private:
  std::string name_;
};

class MpiWay final : public Way {
 public:
  explicit MpiWay(size_t bytes_most) : Way("MPI"), input_(bytes_most), result_(bytes_most) {}
  void send(const void* from, size_t bytes, int to) override { Mpi::module().send(from, static_cast<int>(bytes), to); }
  void receive(void* to, size_t bytes, int from) override { Mpi::module().receive(to, static_cast<int>(bytes), from); }
  void exchange(const void* mine, void* theirs, size_t bytes, int peer) override {
    Mpi::module().exchange_with(mine, theirs, static_cast<int>(bytes), peer);
  }
  char* input() override { return input_.data(); }
  char* result() override { return result_.data(); }

 private:
  std::vector<char> input_, result_;
};

/// In malloc'ed memory, or in memory that peers reach in place.
class ToriiWay final : public Way {
 public:
  ToriiWay(const Job& job, size_t bytes_most, bool allocated)
      : Way(allocated ? "torii, allocated" : "torii, malloc"), context_(job.context()), team_(job.team()) {
    if (allocated) {
      check(torii_allocate(context_, 2 * bytes_most, &memory_), "no memory");
      input_ = static_cast<char*>(memory_);
    } else {
      private_.resize(2 * bytes_most);
      input_ = private_.data();
    }
    result_ = input_ + bytes_most;
  }
  ~ToriiWay() override { (void)torii_free(context_, memory_); }
  void send(const void* from, size_t bytes, int to) override {
    check(torii_send(team_, from, bytes, TORII_U8, to, 1), "the send failed");
  }
  void receive(void* to, size_t bytes, int from) override {
    check(torii_recv(team_, to, bytes, TORII_U8, from, 1, nullptr), "the receive failed");
  }
  void exchange(const void* mine, void* theirs, size_t bytes, int peer) override {
    check(torii_group_begin(team_), "no group");
    check(torii_send(team_, mine, bytes, TORII_U8, peer, 2), "the send failed");
    check(torii_recv(team_, theirs, bytes, TORII_U8, peer, 2, nullptr), "the receive failed");
    check(torii_group_end(team_), "the group failed");
  }
  char* input() override { return input_; }
  char* result() override { return result_; }

 private:
  torii_context* context_;
  torii_team* team_;
  void* memory_ = nullptr;
  std::vector<char> private_;
  char* input_;
  char* result_;
};

enum class Pattern { ping_pong, exchange };
const char* name(Pattern pattern) { return pattern == Pattern::ping_pong ? "ping-pong" : "exchange"; }

/// One round of the pattern on rank 0 or 1.
void run_round(Way& way, Pattern pattern, int rank, size_t bytes) {
  if (pattern == Pattern::exchange) return way.exchange(way.input(), way.result(), bytes, 1 - rank);
  if (rank == 0) way.send(way.input(), bytes, 1);
  way.receive(way.result(), bytes, 1 - rank);
  if (rank == 1) way.send(way.input(), bytes, 0);
}

/// The mean of a block of rounds in us, as rank 0 sees it; of a ping-pong half of that.
double time_block(const Job& job, Way& way, Pattern pattern, size_t bytes, int rounds) {
  job.barrier();
  const auto begun = std::chrono::steady_clock::now();
  for (int round = 0; round < rounds && job.rank() < 2; ++round) run_round(way, pattern, job.rank(), bytes);
  const double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begun).count();
  job.barrier();
  return us / rounds / (pattern == Pattern::ping_pong ? 2 : 1);
}

/// Wrong bytes of one round, summed over both ranks.
int64_t count_wrong(const Job& job, Way& way, Pattern pattern, size_t bytes) {
  const auto value = [](int rank, size_t i) { return static_cast<char>(rank * 31 + static_cast<int>(i % 251)); };
  int64_t wrong = 0;
  if (job.rank() < 2) {
    for (size_t i = 0; i < bytes; ++i) way.input()[i] = value(job.rank(), i);
    std::memset(way.result(), -1, bytes);
    run_round(way, pattern, job.rank(), bytes);
    for (size_t i = 0; i < bytes; ++i) wrong += way.result()[i] != value(1 - job.rank(), i) ? 1 : 0;
  }
  return job.sum(wrong);
}

/// About 10 ms.
int rounds_of(const Job& job, Way& way, Pattern pattern, size_t bytes) {
  const double us = time_block(job, way, pattern, bytes, 3);
  return static_cast<int>(job.max(std::clamp<int64_t>(static_cast<int64_t>(10'000 / std::max(us, 0.05)), 3, 20'000)));
}

int compare(const SendRecvOptions& options, const Mpi& mpi) {
  const Job job("", Mpi::exchange, mpi.rank(), mpi.ranks());
  if (job.ranks() < 2) throw Failure(kBadCommandLine, "1 rank; sends and receives need 2");
  JsonLines lines(job.rank() == 0 ? options.json : "", Output::Mode::append);
  const size_t bytes_most = *std::max_element(options.sizes.begin(), options.sizes.end());
  std::vector<std::unique_ptr<Way>> ways;
  ways.push_back(std::make_unique<MpiWay>(bytes_most));
  ways.push_back(std::make_unique<ToriiWay>(job, bytes_most, false));
  ways.push_back(std::make_unique<ToriiWay>(job, bytes_most, true));
  if (job.rank() == 0) {
    std::printf("# %s, setting '%s', times in us, ratios of MPI's to torii's\n%10s %10s %12s %12s %12s %8s %8s\n",
                Mpi::version().c_str(), options.setting.c_str(), "pattern", "size(B)", "MPI", "malloc", "allocated",
                "ratio", "ratio");
  }
  int64_t wrong = 0;
  for (const Pattern pattern : {Pattern::ping_pong, Pattern::exchange}) {
    for (const size_t bytes : options.sizes) {
      std::vector<std::vector<double>> times(ways.size());
      for (const auto& way : ways) wrong += count_wrong(job, *way, pattern, bytes);
      const int rounds = rounds_of(job, *ways[0], pattern, bytes);
      for (int block = 0; block < options.blocks; ++block) {
        for (size_t i = 0; i < ways.size(); ++i) {
          const size_t w = (i + static_cast<size_t>(block)) % ways.size();
          times[w].push_back(time_block(job, *ways[w], pattern, bytes, rounds));
        }
      }
      if (job.rank() != 0) continue;
      std::vector<double> medians;
      for (const auto& one : times) medians.push_back(median(one));
      std::printf("%10s %10zu %12.3f %12.3f %12.3f %8.2f %8.2f\n", name(pattern), bytes, medians[0], medians[1],
                  medians[2], medians[0] / medians[1], medians[0] / medians[2]);
      std::fflush(stdout);
      if (!lines.wanted()) continue;
      lines.add({{"pattern", name(pattern)},
                 {"mpi", Mpi::version()},
                 {"setting", options.setting},
                 {"bytes", bytes},
                 {"mpi_us", medians[0]},
                 {"torii_malloc_us", medians[1]},
                 {"torii_allocated_us", medians[2]},
                 {"blocks", options.blocks},
                 {"rounds", rounds}});
    }
  }
  if (wrong != 0 && job.rank() == 0) std::printf("# %lld bytes are wrong\n", static_cast<long long>(wrong));
  return wrong == 0 ? kOk : kWrongData;
}

bool parse(int argc, char** argv, const Mpi& mpi, SendRecvOptions& options) {
  std::string sizes = "8,64,1K,8K,64K,512K,4M,32M";
  const CommandLine app("Times sends and receives of torii and of MPI in turn, between ranks 0 and 1.");
  app.add_option("--sizes", sizes, "a list of sizes with K, M or G (1024)").show_default();
  app.add_option("--blocks", options.blocks, "blocks of each way; the median is told").range(1, 1000).show_default();
  app.add_option("--setting", options.setting, "what to call MPI's setting");
  app.add_option("--json", options.json, "append one JSON object per line to this file");
  const char* example = "mpirun.openmpi -n 2 sendrecv_perf.openmpi --sizes 8,64K,4M";
  const std::string version = torii_version() + (", " + Mpi::version());
  if (!parse_command_line(app, argc, argv, example, version, mpi.rank() == 0)) return false;
  for (const std::string& word : split_list(sizes)) {
    options.sizes.push_back(parse_size("--sizes", word));
    if (options.sizes.back() > INT_MAX) {
      throw Failure(kBadCommandLine, "--sizes '" + word + "' is more than an MPI call takes (2G)");
    }
  }
  return true;
}

}  // namespace
}  // namespace torii::perf

int main(int argc, char** argv) {
  using namespace torii::perf;
  const Mpi mpi(argc, argv);
  try {
    SendRecvOptions options;
    if (!parse(argc, argv, mpi, options)) return kOk;
    return compare(options, mpi);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", mpi.rank(), error.what());
    Mpi::abort(exit_code_of(error));
  }
}
