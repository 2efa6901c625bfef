// SPDX-License-Identifier: Apache-2.0
// Blocks all ranks but one in a barrier and asks the kernel what that took.
#include "perf/common/blocked.hpp"

#include <sys/resource.h>
#include <time.h>
#include <torii/torii.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "perf/common/failure.hpp"
#include "perf/common/job.hpp"
#include "perf/common/program.hpp"

namespace torii::perf {
namespace {

struct Asked {
  double late_s = 0;
  double most_percent = 0;
  int ranks = 0;
};

/// CPU time of this process and its threads, in the kernel included.
int64_t cpu_us() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& time) { return time.tv_sec * int64_t{1'000'000} + time.tv_usec; };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

int64_t wall_us() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1'000'000} + now.tv_nsec / 1000;
}

/// True for the ranks that shall report too much. The last rank is the late one.
bool report(const std::vector<int64_t>& values, int ranks, double most_percent) {
  int64_t all_us = 0;
  int64_t blocked_us = 0;
  int64_t most_us = 0;
  int most_rank = 0;
  for (int rank = 0; rank + 1 < ranks; ++rank) {
    const int64_t used_us = values[2 * static_cast<size_t>(rank)];
    all_us += used_us;
    blocked_us = std::max(blocked_us, values[2 * static_cast<size_t>(rank) + 1]);
    if (used_us <= most_us) continue;
    most_us = used_us;
    most_rank = rank;
  }
  const auto percent = [&](int64_t us) { return 100.0 * static_cast<double>(us) / static_cast<double>(blocked_us); };
  std::printf("%d ranks blocked for %.2f s used %.3f s of CPU time: %.2f %% of one CPU, rank %d the most: %.2f %%\n",
              ranks - 1, static_cast<double>(blocked_us) / 1e6, static_cast<double>(all_us) / 1e6, percent(all_us),
              most_rank, percent(most_us));
  if (most_percent == 0 || percent(all_us) <= most_percent) return false;
  std::fprintf(stderr, "that is more than the %g %% of one CPU that --most allows\n", most_percent);
  return true;
}

int block(const Asked& asked) {
  const Job job("");
  if (job.ranks() < 2) throw Failure(kBadCommandLine, "--late needs at least 2 ranks");
  // Twice, so that the plan is in place and all have left the first call.
  for (int i = 0; i < 2; ++i) check(torii_barrier(job.team()), "barrier");
  const int64_t cpu_before_us = cpu_us();
  const int64_t begun_us = wall_us();
  if (job.rank() == job.ranks() - 1) {
    const auto whole_s = static_cast<time_t>(asked.late_s);
    const timespec time = {whole_s, static_cast<long>((asked.late_s - static_cast<double>(whole_s)) * 1e9)};
    nanosleep(&time, nullptr);
  }
  check(torii_barrier(job.team()), "barrier");
  const std::array<int64_t, 2> mine = {cpu_us() - cpu_before_us, std::max<int64_t>(wall_us() - begun_us, 1)};
  const std::vector<int64_t> all = job.gather(mine);
  const bool is_too_much = job.rank() == 0 && report(all, job.ranks(), asked.most_percent);
  return job.max(is_too_much ? 1 : 0) != 0 ? kWrongData : kOk;
}

}  // namespace

int run_blocked(int argc, char** argv) noexcept {
  return run_program(argv, [&] {
    Asked asked;
    const CommandLine app("The CPU time of ranks that wait in a barrier for one that comes late.");
    app.add_option("--late", asked.late_s, "seconds by which the last rank comes late").required().range(0.01, 1e4);
    app.add_option("--most", asked.most_percent, "of one CPU, all waiting ranks together: exit code 1 if they use more")
        .range(0.01, 1e5);
    app.add_option("--ranks", asked.ranks, "start so many ranks on this machine").range(1, 1024);
    if (!parse_command_line(app, argc, argv, "barrier_perf --ranks 2 --late 5 --most 5", speaks())) return int{kOk};
    start_asked_ranks(asked.ranks, argc, argv);
    return block(asked);
  });
}

}  // namespace torii::perf
