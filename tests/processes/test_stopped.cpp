// SPDX-License-Identifier: Apache-2.0
// Jobs that are stopped as a whole for longer than TIMEOUT, as by Ctrl-Z or a batch system, and then go on: nobody is
// missing, so no call ends, whatever the ranks were waiting for.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/devices/address.hpp"
#include "tests/processes/join_job.hpp"
#include "tests/support/places.hpp"
#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

constexpr const char* kTimeout = "TORII_TIMEOUT=1";
constexpr useconds_t kStopUs = 1'500'000;
/// Between the first and the last process that is stopped or continued.
constexpr useconds_t kApartUs = 30'000;
/// How long ranks work when they are stopped amidst, and when they are stopped before.
constexpr useconds_t kLongUs = 2'900'000;
constexpr useconds_t kShortUs = 100'000;

/// Stops one after the other and continues them the other way round: the last to be stopped waits for all others when
/// it goes on.
void stop_for_long(std::vector<pid_t> processes) {
  for (const pid_t pid : processes) {
    ASSERT_EQ(kill(pid, SIGSTOP), 0);
    usleep(kApartUs);
  }
  usleep(kStopUs);
  std::reverse(processes.begin(), processes.end());
  for (const pid_t pid : processes) {
    ASSERT_EQ(kill(pid, SIGCONT), 0);
    usleep(kApartUs);
  }
}

Words work(int chosen, useconds_t us) {
  return {helper("failure_rank"), "work", std::to_string(chosen), std::to_string(us), "1000"};
}

int workers(const Outcome& outcome) {
  int count = 0;
  for (std::size_t at = 0; (at = outcome.output.find("has worked", at)) != std::string::npos; ++at) ++count;
  return count;
}

/// Ranks under torii-run, which is stopped and continued with them, amidst their work of `work_us`.
struct LaunchedJob {
  int ranks;
  useconds_t work_us;
  Words environment;
  int chosen = 0;
};

/// All jobs at once are stopped after `running_us`, since each takes seconds and most of them stopped.
void stop_launched_jobs(const std::vector<LaunchedJob>& jobs, useconds_t running_us) {
  std::vector<std::unique_ptr<Process>> launched;
  for (const LaunchedJob& job : jobs) {
    Words environment = job.environment;
    environment.push_back(kTimeout);
    Words command = {bin_dir() + "/torii-run", "-n", std::to_string(job.ranks), "--on-failure", "continue", "--"};
    const Words rank = work(job.chosen, job.work_us);
    command.insert(command.end(), rank.begin(), rank.end());
    launched.push_back(std::make_unique<Process>(command, environment));
  }
  usleep(running_us);
  std::vector<std::thread> stops;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::vector<pid_t> processes = children_of(launched[i]->pid());
    processes.push_back(launched[i]->pid());
    const std::vector<pid_t> started = ranks_of(launched[i]->pid());
    EXPECT_EQ(started.size(), static_cast<std::size_t>(jobs[i].ranks)) << "job " << i;
    processes.insert(processes.end(), started.begin(), started.end());
    stops.emplace_back(stop_for_long, processes);
  }
  for (std::thread& stop : stops) stop.join();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Outcome outcome = launched[i]->wait();
    EXPECT_EQ(outcome.code, 0) << "job " << i << ": " << outcome.output;
    EXPECT_EQ(workers(outcome), jobs[i].ranks) << "job " << i << ": " << outcome.output;
  }
}

/// On one node, of sleepers, and between nodes.
TEST(Stopped, CallsGoOn) {
  std::vector<LaunchedJob> jobs = {{3, kLongUs, {}}, {3, kLongUs, {"TORII_WAIT=sleep"}}};
#ifdef TORII_TEST_LIBFABRIC
  jobs.push_back({2, kLongUs, {"TORII_TEST_PER_NODE=1"}});
#endif
  stop_launched_jobs(jobs, 900'000);
}

TEST(Stopped, JoiningUnderTheLauncherGoesOn) {
  stop_launched_jobs({{3, kShortUs, {"FAILURE_LATE_US=600000"}, 1}}, 400'000);
}

TEST(Stopped, JoiningOverTcpGoesOn) {
  for (const int late : {0, 1}) {
    const int port = free_port();
    std::vector<std::unique_ptr<Process>> ranks;
    std::vector<pid_t> processes;
    for (int rank = 0; rank < 2; ++rank) {
      ranks.push_back(std::make_unique<Process>(
          work(late, kShortUs), Words{kTimeout, "RANK=" + std::to_string(rank), "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1",
                                      "MASTER_PORT=" + std::to_string(port), "FAILURE_LATE_US=600000"}));
      processes.push_back(ranks.back()->pid());
    }
    usleep(300'000);
    // The one that waits already is stopped last, and goes on first.
    if (late == 1) std::reverse(processes.begin(), processes.end());
    stop_for_long(processes);
    for (const auto& rank : ranks) {
      const Outcome outcome = rank->wait();
      EXPECT_EQ(outcome.code, 0) << outcome.output;
      EXPECT_EQ(workers(outcome), 1) << outcome.output;
    }
  }
}

}  // namespace
}  // namespace torii::tests
