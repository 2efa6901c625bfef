// SPDX-License-Identifier: Apache-2.0
// How a laboratory ends: failures, timeouts, signals, kills; the fixture checks after each that nothing is left.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/lab/lab_run.hpp"
#include "tests/support/places.hpp"

namespace torii::tests {
namespace {

/// Runs a script on every node of a small torus; it tells that it has begun by a file per rank.
class LabEnd : public Lab {
 protected:
  Words script(const std::string& text) const {
    return command({"torus", "2x2"}, {"sh", "-c", ": > " + path("begun.$RANK") + "; " + text});
  }
  void wait_until_begun() const {
    for (int rank = 0; rank < 4; ++rank) {
      const std::string file = path("begun." + std::to_string(rank));
      for (const double end_s = now_s() + 10; !std::filesystem::exists(file) && now_s() < end_s;) usleep(1000);
      ASSERT_TRUE(std::filesystem::exists(file));
    }
  }
};

TEST_F(LabEnd, TheFirstFailingRanksCodeIsTheJobs) {
  const Outcome outcome = run(script("[ $RANK = 2 ] && exit 7; exec sleep 60"));
  EXPECT_EQ(outcome.code, 7) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "torii-lab: rank 2 ended with code 7")) << outcome.output;
  EXPECT_LT(outcome.seconds, 10);
}

TEST_F(LabEnd, AKilledRankEndsTheJob) {
  const Outcome outcome = run(script("[ $RANK = 3 ] && kill -9 $$; exec sleep 60"));
  EXPECT_EQ(outcome.code, 128 + SIGKILL) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "rank 3 was ended by signal 9 (Killed)")) << outcome.output;
}

TEST_F(LabEnd, TheTimeoutNamesWhoStillRuns) {
  Words words = script("[ $RANK = 1 ] && exit 0; exec sleep 60");
  *std::ranges::find(words, "25") = "0.7";
  const Outcome outcome = run(words);
  EXPECT_EQ(outcome.code, 4) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "the timeout is over; still running: rank 0, rank 2, rank 3")) << outcome.output;
}

TEST_F(LabEnd, RanksThatIgnoreTheEndAreKilled) {
  Words words = script("trap '' TERM; while :; do sleep 0.1; done");
  *std::ranges::find(words, "25") = "0.5";
  const Outcome outcome = run(words);
  EXPECT_EQ(outcome.code, 4) << outcome.output;
  EXPECT_LT(outcome.seconds, 15);
}

TEST_F(LabEnd, SignalsAreTheRanksToHandle) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    Process lab(script("exec sleep 60"));
    wait_until_begun();
    lab.kill(signal);
    const Outcome outcome = lab.wait();
    EXPECT_EQ(outcome.code, 128 + signal) << outcome.output;
    EXPECT_LT(outcome.seconds, 15);
  }
}

TEST_F(LabEnd, ASecondSignalKills) {
  Process lab(script("trap '' TERM; while :; do sleep 0.1; done"));
  wait_until_begun();
  lab.kill(SIGTERM);
  usleep(200'000);
  lab.kill(SIGTERM);
  const Outcome outcome = lab.wait();
  EXPECT_EQ(outcome.code, 128 + SIGKILL) << outcome.output;
  EXPECT_LT(outcome.seconds, 15);
}

TEST_F(LabEnd, AKilledLaboratoryTakesEverythingWithIt) {
  // Also what has left its session and hides behind a process that has ended.
  Process lab(script("setsid sh -c 'trap \"\" TERM HUP; sleep 300 & sleep 300' > /dev/null 2>&1 & exec sleep 300"));
  wait_until_begun();
  lab.kill(SIGKILL);
  EXPECT_EQ(lab.wait().code, 128 + SIGKILL);
}

TEST_F(LabEnd, AKillWhileTheNetworkIsMadeLeavesNothing) {
  for (int delay_ms = 0; delay_ms < 300; delay_ms += 30) {
    Process lab(command({"torus", "3x3"}, {"sleep", "60"}));
    usleep(static_cast<useconds_t>(delay_ms) * 1000);
    lab.kill(SIGKILL);
    lab.wait();
  }
}

TEST_F(LabEnd, WhatRanksLeaveRunningIsEnded) {
  const Outcome outcome = run(script("setsid sleep 300 > /dev/null 2>&1 & exit 0"));
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_LT(outcome.seconds, 10);
}

TEST_F(LabEnd, TwoLaboratoriesDoNotSeeEachOther) {
  Process first(script("exec sleep 2"));
  wait_until_begun();
  const Outcome second = run(command({"torus", "2x2"}, {helper("join_rank"), "gather"}));
  EXPECT_EQ(second.code, 0) << second.output;
  EXPECT_EQ(first.wait().code, 0);
}

TEST_F(LabEnd, AProgramThatCannotBeStartedIsNamed) {
  const Outcome outcome = run(command({"torus", "2"}, {"./no-such-program"}));
  EXPECT_EQ(outcome.code, 2) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "cannot start './no-such-program': No such file")) << outcome.output;
}

TEST(LabCommandLine, MistakesAreNamed) {
  const std::string lab = bin_dir() + "/torii-lab";
  struct Case {
    Words words;
    const char* says;
  };
  const Case cases[] = {{{"ring", "3", "--", "true"}, "ring"},
                        {{"torus", "3xq", "--", "true"}, "'q' is no extent"},
                        {{"torus", "99x99", "--", "true"}, "a laboratory has 2 to 64"},
                        {{"rails", "17", "--", "true"}, "the number of rails must be from 1 to 16"},
                        {{"rails", "x", "--", "true"}, "rails 'x'"},
                        {{"torus", "3x3", "--link", "0:zz=5", "--", "true"}, "node 0 has no device 'zz'"},
                        {{"torus", "3x3", "--rate", "0", "--", "true"}, "--rate"},
                        {{"sites", "8", "--", "true"}, "sites '8': write the hosts"},
                        {{"rails", "2", "--delay", "3", "--", "true"}, "--delay is for sites"},
                        {{"tree", "/none", "--rate", "5", "--", "true"}, "--rate is not for tree"},
                        {{"sites", "2+2", "--window", "-1", "--", "true"}, "--window: -1 is negative"},
                        {{"tree", "/none", "--", "true"}, "/none"},
                        {{"torus", "3x3", "true"}, "'true' is not understood; write -- before the program"},
                        {{"torus", "3x3"}, "no program to start"},
                        {{"enter"}, "torii-lab: enter needs a host and a command"},
                        {{"enter", "node0"}, "torii-lab: enter needs a host and a command"},
                        {{"torus", "3x3", "--"}, "no program to start"}};
  for (const Case& one : cases) {
    Words words{lab};
    words.insert(words.end(), one.words.begin(), one.words.end());
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, 2) << outcome.output;
    EXPECT_TRUE(holds(outcome.output, one.says)) << outcome.output;
    EXPECT_TRUE(outcome.output.starts_with("torii-lab: ")) << outcome.output;
  }
}

TEST(LabCommandLine, OthersThanRootAreToldWhy) {
  const std::string lab = bin_dir() + "/torii-lab";
  Words words{lab, "torus", "2", "--", "true"};
  if (geteuid() == 0) {
    // Where this folder is closed to others the program cannot even be started as somebody else.
    const Words somebody{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
    Words try_it = somebody;
    try_it.insert(try_it.end(), {lab, "--version"});
    if (run(try_it).code != 0) GTEST_SKIP() << "no other user can run " << lab;
    words.insert(words.begin(), somebody.begin(), somebody.end());
  }
  const Outcome outcome = run(words);
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "not possible here: it makes network namespaces")) << outcome.output;
}

/// A folder that is no mount point, with this machine's folders bound into it, as / of a laboratory.
TEST_F(LabEnd, InAPlainChrootTheReasonIsTold) {
  const std::string script =
      "mount --make-rprivate / && mount -t tmpfs none \"$1\" && mkdir \"$1/root\" || exit 77\n"
      "for each in /*; do\n"
      "  if [ -L \"$each\" ]; then cp -P \"$each\" \"$1/root/\"; elif [ -d \"$each\" ]; then\n"
      "    mkdir \"$1/root$each\"; mount --rbind \"$each\" \"$1/root$each\"; fi\n"
      "done\n"
      "exec chroot \"$1/root\" \"$2\" torus 2 -- true\n";
  const Words words{"unshare", "-m",           "--propagation",         "unchanged", "sh", "-c", script,
                    "sh",      path("chroot"), bin_dir() + "/torii-lab"};
  std::filesystem::create_directory(path("chroot"));
  const Outcome outcome = run(words);
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "not possible here: / is no mount point")) << outcome.output;
}

}  // namespace
}  // namespace torii::tests
