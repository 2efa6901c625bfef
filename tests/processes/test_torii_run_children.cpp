// SPDX-License-Identifier: Apache-2.0
// torii-run and processes that are not ranks: what is below a rank ends with the job, daemons and others' children live
// on.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/places.hpp"
#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

const std::string kLauncher = bin_dir() + "/torii-run";
using Pids = std::vector<pid_t>;

/// The numbers behind a word of the output, which ends each process that lives on.
class Printed {
 public:
  Printed(const std::string& output, const std::string& word) {
    std::istringstream words(output);
    for (std::string one; words >> one;) {
      if (one != word) continue;
      pid_t pid = 0;
      if (words >> pid) pids.push_back(pid);
    }
  }
  Printed(const Printed&) = delete;
  Printed& operator=(const Printed&) = delete;
  ~Printed() {
    for (const pid_t pid : pids) kill(pid, SIGKILL);
  }
  Pids pids;
};

bool lives(pid_t pid) { return kill(pid, 0) == 0; }

/// Waits up to five seconds for their end. This process has to collect them.
bool are_gone(const Pids& pids) {
  for (int i = 0; i < 1000; ++i) {
    for (const pid_t pid : pids) waitpid(pid, nullptr, WNOHANG);
    if (std::ranges::none_of(pids, lives)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

/// All processes below `pid`, once there are so many.
Pids descendants(pid_t pid, std::size_t count) {
  Pids found;
  for (int i = 0; i < 1000 && found.size() != count; ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    found = children_of(pid);
    for (std::size_t at = 0; at < found.size(); ++at) {
      const Pids more = children_of(found[at]);
      found.insert(found.end(), more.begin(), more.end());
    }
  }
  EXPECT_EQ(found.size(), count);
  return found;
}

class ToriiRunChildren : public testing::Test {
 protected:
  /// The first process of a container may never collect what is left to it.
  static void SetUpTestSuite() { prctl(PR_SET_CHILD_SUBREAPER, 1); }
};

TEST_F(ToriiRunChildren, AKilledLauncherTakesWrappedRanksWithIt) {
  // The last rank is in a session of its own, as pseudo-terminals and Python's start_new_session make them. The
  // background process comes to the inner process before the kill.
  const std::string script =
      "case $TORII_RANK in 0) sleep 77; true;; 1) (sleep 77 & exec sleep 77) ; true;; "
      "2) setsid --fork --wait sleep 77; true;; esac";
  for (const bool is_stopped : {false, true}) {
    Process job({kLauncher, "-n", "3", "--", "sh", "-c", script});
    // The inner process, three shells, three sleeps and setsid, and the background process.
    const Pids all = descendants(job.pid(), 9);
    ASSERT_FALSE(all.empty()) << job.wait().output;
    if (is_stopped) kill(all[0], SIGSTOP);
    job.kill(SIGKILL);
    EXPECT_EQ(job.wait().code, 128 + SIGKILL);
    EXPECT_TRUE(are_gone(all)) << (is_stopped ? "the inner process was stopped" : "");
  }
}

TEST_F(ToriiRunChildren, AKilledInnerProcessEndsTheJob) {
  Process job({kLauncher, "-n", "2", "--", "sleep", "77"});
  const Pids all = descendants(job.pid(), 3);
  ASSERT_FALSE(all.empty()) << job.wait().output;
  kill(all[0], SIGKILL);
  EXPECT_EQ(job.wait().code, 128 + SIGKILL);
  EXPECT_TRUE(are_gone(all));
}

TEST_F(ToriiRunChildren, ChildrenThatItNeverStartedLiveOn) {
  // A server of an entry point, one that leaves an orphan while the job runs, and a daemon from before.
  const std::string quiet = " > /dev/null 2>&1 & echo other $!; ";
  const std::string script = "sleep 66" + quiet + "sh -c 'sleep 66" + quiet + "sleep 0.2' & (setsid sleep 66" + quiet +
                             ") ; exec " + kLauncher + " -n 2 -- sleep 0.4";
  const Outcome outcome = run({"sh", "-c", script});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  const Printed others(outcome.output, "other");
  ASSERT_EQ(others.pids.size(), 3u) << outcome.output;
  for (const pid_t pid : others.pids) EXPECT_TRUE(lives(pid)) << pid << " of\n" << outcome.output;
}

TEST_F(ToriiRunChildren, NoZombieOfAnotherChildStays) {
  const std::string script = "sleep 0.1 & export CHILD=$!; exec " + kLauncher +
                             " -n 1 -- sh -c 'sleep 0.4; [ ! -e /proc/$CHILD ] || echo zombie'";
  EXPECT_EQ(run({"sh", "-c", script}).output, "");
}

TEST_F(ToriiRunChildren, DaemonsOfRanksLiveOnAndTheRestEnds) {
  // A daemon by setsid, one that has forked again in its session, and a process that stays in the job's session.
  const std::string quiet = " > /dev/null 2>&1 & echo ";
  const std::string script = "setsid sleep 66" + quiet + "daemon $!; setsid sh -c 'sleep 66" + quiet +
                             "daemon $!'; (sleep 66" + quiet + "stray $!); sleep 0.1; ";
  for (const std::string end : {"exit 0", "exit 3"}) {
    const Outcome outcome = run({kLauncher, "-n", "2", "--", "sh", "-c", script + end});
    EXPECT_EQ(outcome.code, end == "exit 0" ? 0 : 3) << outcome.output;
    const Printed daemons(outcome.output, "daemon");
    const Printed strays(outcome.output, "stray");
    ASSERT_EQ(daemons.pids.size(), 4u) << outcome.output;
    ASSERT_EQ(strays.pids.size(), 2u) << outcome.output;
    for (const pid_t pid : daemons.pids) EXPECT_TRUE(lives(pid)) << pid << " of\n" << outcome.output;
    EXPECT_TRUE(are_gone(strays.pids)) << outcome.output;
  }
}

/// The child of a rank makes its session when the job is ending already, and its parent ends later.
TEST_F(ToriiRunChildren, AnEndedJobTakesSessionsThatAreMadeMeanwhile) {
  Process job({kLauncher, "-n", "1", "--timeout", "0.5", "--", "sh", "-c",
               "trap '' TERM; (sleep 0.8; exec setsid sleep 77) & echo below $!; sleep 77"});
  const Outcome outcome = job.wait();
  EXPECT_EQ(outcome.code, 4) << outcome.output;
  EXPECT_LT(outcome.seconds, 20) << outcome.output;
  const Printed below(outcome.output, "below");
  ASSERT_EQ(below.pids.size(), 1u) << outcome.output;
  EXPECT_TRUE(are_gone(below.pids)) << outcome.output;
}

TEST_F(ToriiRunChildren, AnEndedJobTakesSessionsBelowItsRanksWithIt) {
  // The rank, setsid, ends at SIGTERM; its child in another session does not hear it.
  for (const bool by_signal : {false, true}) {
    Process job({kLauncher, "-n", "2", "--timeout", by_signal ? "20" : "0.5", "--", "setsid", "--fork", "--wait",
                 "sleep", "77"});
    const Pids all = descendants(job.pid(), 5);
    if (by_signal) job.kill(SIGTERM);
    EXPECT_EQ(job.wait().code, by_signal ? 128 + SIGTERM : 4);
    EXPECT_TRUE(are_gone(all));
  }
}

TEST_F(ToriiRunChildren, ASignalForTheWholeGroupIsOneSignal) {
  const std::string script = "trap 'sleep 0.3; echo got; exit 0' TERM; echo ready; while :; do sleep 0.02; done";
  Process job({"setsid", kLauncher, "-n", "2", "--", "sh", "-c", script});
  for (int i = 0; i < 1000 && ranks_of(job.pid()).size() < 2; ++i) usleep(5000);
  usleep(200'000);  // until the shells have set their traps
  kill(-job.pid(), SIGTERM);
  const Outcome outcome = job.wait();
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(count_of(outcome.output, "got\n"), 2) << outcome.output;
}

}  // namespace
}  // namespace torii::tests
