// SPDX-License-Identifier: Apache-2.0
// torii-run: command line, exit codes, signals, failures, timeouts; kill -9 at random moments leaves nothing behind.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/places.hpp"
#include "tests/support/process.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

const std::string kRun = bin_dir() + "/torii-run";

Outcome torii_run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), kRun);
  return run(arguments);
}

Outcome shell(int ranks, const std::string& script, std::vector<std::string> flags = {}) {
  std::vector<std::string> arguments{"-n", std::to_string(ranks)};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  arguments.insert(arguments.end(), {"--", "sh", "-c", script});
  return torii_run(arguments);
}

/// Waits until `done` or five seconds are over.
template <class Done>
bool eventually(Done&& done) {
  for (int i = 0; i < 1000; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

bool exists(pid_t pid) { return kill(pid, 0) == 0; }

TEST(ToriiRun, HelpAndVersion) {
  const Outcome help = torii_run({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_TRUE(holds(help.output, "Example:\n  torii-run -n 4 -- ")) << help.output;
  for (const char* flag : {"-n ", "--timeout", "--on-failure", "--version"})
    EXPECT_TRUE(holds(help.output, flag)) << flag;
  const Outcome version = torii_run({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.output.rfind("torii-run ", 0), 0u) << version.output;
}

TEST(ToriiRun, BadCommandLinesEndWithTwoAndAMessageOfTheirOwn) {
  const std::vector<std::vector<std::string>> lines{{},
                                                    {"-n", "0", "true"},
                                                    {"-n", "x", "true"},
                                                    {"-n", "2000", "true"},
                                                    {"-n", "2"},
                                                    {"-n", "2", "--"},
                                                    {"-n", "2", "--bogus", "true"},
                                                    {"-n", "2", "--timeout", "-1", "true"},
                                                    {"-n", "2", "--timeout", "soon", "true"},
                                                    {"-n", "2", "--timeout", "nan", "true"},
                                                    {"-n", "2", "--timeout", "", "true"},
                                                    {"-n", "2", "--on-failure", "cry", "true"},
                                                    {"-n", "2", "--", "./no-such-program"},
                                                    {"-n", "2", "--", "/etc/passwd"}};
  std::set<std::string> messages;
  for (const auto& line : lines) {
    const Outcome outcome = torii_run(line);
    EXPECT_EQ(outcome.code, 2) << outcome.output;
    EXPECT_TRUE(outcome.output.starts_with("torii-run: ")) << outcome.output;
    messages.insert(outcome.output);
  }
  EXPECT_EQ(messages.size(), lines.size() - 1) << "only the two lines without a program share a message";
}

TEST(ToriiRun, StartsRanksAndPassesArgumentsOutputAndInput) {
  const Outcome outcome = torii_run({"-n", "3", "--", "sh", "-c", "echo $TORII_RANK/$TORII_RANKS $1", "sh", "-x --y"});
  EXPECT_EQ(outcome.code, 0);
  for (const char* line : {"0/3 -x --y\n", "1/3 -x --y\n", "2/3 -x --y\n"}) EXPECT_TRUE(holds(outcome.output, line));
  const Outcome without_dashes = torii_run({"-n", "1", "echo", "--timeout", "-n"});
  EXPECT_EQ(without_dashes.output, "--timeout -n\n") << "flags behind the program belong to the program";
  const Outcome input = run({"sh", "-c", "echo hello | " + kRun + " -n 2 -- cat"});
  EXPECT_EQ(input.output, "hello\n") << "rank 0 alone reads";
}

TEST(ToriiRun, ClosedStreamsAreNotTakenForTheJobsSockets) {
  const std::string program = helper("join_rank") + " twice";
  const std::string script = kRun + " --timeout 20 -n 2 -- " + program + " <&- >&- 2>&-";
  const Outcome outcome = run({"sh", "-c", script});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

TEST(ToriiRun, TooFewDescriptorsAreNamedWithTheLimit) {
  const Outcome outcome = run({"sh", "-c", "ulimit -n 64; " + kRun + " -n 80 -- true"});
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  EXPECT_TRUE(holds(outcome.output,
                    ": Too many open files; torii-run may open 64, and needs up to 2 for each of 80 ranks; raise the "
                    "limit (ulimit -n, or ulimit -Hn as root)"))
      << outcome.output;
  // With which limit the job cannot even begin depends on what this process has open.
  bool is_told = false;
  for (int limit = 4; limit < 40 && !is_told; ++limit) {
    const Outcome none = run({"sh", "-c", "ulimit -n " + std::to_string(limit) + "; " + kRun + " -n 1 -- true"});
    is_told = holds(none.output, "cannot start the job: Too many open files; raise the limit (ulimit -n)");
    EXPECT_EQ(none.code, is_told ? 3 : 127) << none.output;
  }
  EXPECT_TRUE(is_told);
}

/// A soft limit that is too low is raised as far as needed, a higher one stays, and the hard limit is never passed.
TEST(ToriiRun, RanksMayOpenAsManyFilesAsTheJobNeeds) {
  const auto limit_of_ranks = [](const std::string& limits) {
    const Outcome outcome = run({"sh", "-c", limits + kRun + " -n 80 -- sh -c 'ulimit -n'"});
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    std::istringstream lines(outcome.output);
    return std::set<std::string>(std::istream_iterator<std::string>(lines), {});
  };
  EXPECT_EQ(limit_of_ranks("ulimit -Sn 64; ulimit -Hn 2000; "), std::set<std::string>{"896"});
  EXPECT_EQ(limit_of_ranks("ulimit -Sn 1500; ulimit -Hn 2000; "), std::set<std::string>{"1500"});
  EXPECT_EQ(limit_of_ranks("ulimit -Sn 64; ulimit -Hn 500; "), std::set<std::string>{"500"});
}

TEST(ToriiRun, ReturnsTheFirstFailingRanksCode) {
  EXPECT_EQ(shell(2, "exit 0").code, 0);
  const Outcome code = shell(3, "[ $TORII_RANK = 1 ] && exit 9; sleep 0.3; exit 5");
  EXPECT_EQ(code.code, 9);
  EXPECT_TRUE(holds(code.output, "torii-run: rank 1 (process ")) << code.output;
  EXPECT_TRUE(holds(code.output, ") ended with code 9")) << code.output;
  const Outcome signal = shell(2, "[ $TORII_RANK = 1 ] && kill -SEGV $$; sleep 0.3");
  EXPECT_EQ(signal.code, 128 + SIGSEGV);
  EXPECT_TRUE(holds(signal.output, "was ended by signal 11 (Segmentation fault)")) << signal.output;
}

TEST(ToriiRun, EndsTheOthersAfterAFailure) {
  const Outcome outcome = shell(3, "[ $TORII_RANK = 1 ] && exit 6; sleep 60");
  EXPECT_EQ(outcome.code, 6);
  EXPECT_GE(outcome.seconds, 0.9) << "the others get a second to report";
  EXPECT_LT(outcome.seconds, 3.5);
  EXPECT_FALSE(holds(outcome.output, "rank 0")) << "how a rank ends that was told to is no news: " << outcome.output;
}

TEST(ToriiRun, KillsWhoDoesNotListen) {
  const Outcome deaf = shell(2, "[ $TORII_RANK = 1 ] && exit 6; trap '' TERM; while :; do sleep 0.05; done");
  EXPECT_EQ(deaf.code, 6);
  EXPECT_GE(deaf.seconds, 3.9);
  EXPECT_LT(deaf.seconds, 8);
  const Outcome stopped = shell(2, "[ $TORII_RANK = 1 ] && exit 6; kill -STOP $$");
  EXPECT_EQ(stopped.code, 6);
  EXPECT_LT(stopped.seconds, 3.5) << "a stopped rank is woken to hear SIGTERM";
}

TEST(ToriiRun, ContinueLetsTheOthersFinish) {
  const Outcome outcome =
      shell(3, "[ $TORII_RANK = 1 ] && exit 6; sleep 2; echo finished $TORII_RANK", {"--on-failure", "continue"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(holds(outcome.output, "finished 0\n") && holds(outcome.output, "finished 2\n")) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, ") ended with code 6")) << outcome.output;
}

TEST(ToriiRun, ContinueEndsWellIfTheSurvivorsDo) {
  struct Case {
    const char* rank1;
    const char* rank2;
    const char* rank0;
    int code;
  };
  const Case cases[] = {{"kill -9 $$", "exit 0", "exit 0", 0},
                        {"kill -9 $$", "kill -9 $$", "exit 0", 0},
                        {"exit 6", "kill -9 $$", "exit 0", 0},
                        {"kill -9 $$", "exit 5", "exit 0", 128 + SIGKILL},
                        {"exit 6", "exit 7", "exit 0", 6},
                        {"kill -9 $$", "kill -9 $$", "kill -9 $$", 128 + SIGKILL},
                        {"kill -9 $$", "exit 0", "exit 3", 128 + SIGKILL},
                        {"exit 0", "exit 0", "exit 3", 0}};
  for (const Case& one : cases) {
    // One after the other: rank 1, 2, 0.
    const std::string script = std::string("case $TORII_RANK in 1) ") + one.rank1 + ";; 2) sleep 0.2; " + one.rank2 +
                               ";; *) sleep 0.4; " + one.rank0 + ";; esac";
    const Outcome outcome = shell(3, script, {"--on-failure", "continue"});
    EXPECT_EQ(outcome.code, one.code) << script << "\n" << outcome.output;
  }
  // A job that was told to end has no survivors.
  const std::string script = "[ $TORII_RANK = 1 ] && exit 0; sleep 60";
  EXPECT_EQ(shell(2, script, {"--on-failure", "continue", "--timeout", "0.3"}).code, 4);
}

TEST(ToriiRun, ReplaceStartsAFailedRankAnew) {
  // Rank 1 fails in its first two lives; the folder remembers them.
  const std::string folder = testing::TempDir() + "torii_test_lives_" + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  const std::string others = "[ $TORII_RANK = 1 ] || while [ ! -e " + folder + "/2 ]; do sleep 0.02; done; ";
  const std::string script = others + "[ $TORII_RANK = 1 ] || exit 0; n=$(ls " + folder + " | wc -l); touch " + folder +
                             "/$n; [ $n -ge 2 ] || exit 5; echo third life";
  const Outcome outcome = shell(3, script, {"--on-failure", "replace"});
  std::filesystem::remove_all(folder);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "third life")) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "ended with code 5; replaced by process ")) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "replacement 2 of 3")) << outcome.output;
}

TEST(ToriiRun, NobodyIsReplacedOnceARankHasEndedWell) {
  const Outcome outcome = shell(2, "[ $TORII_RANK = 0 ] && exit 0; sleep 0.5; exit 5", {"--on-failure", "replace"});
  EXPECT_EQ(outcome.code, 5);
  EXPECT_FALSE(holds(outcome.output, "replaced by")) << outcome.output;
}

TEST(ToriiRun, ReplaceEndsTheJobWhenTooManyFail) {
  const Outcome outcome =
      shell(2, "[ $TORII_RANK = 1 ] && exit 5; sleep 60", {"--on-failure", "replace", "--replacements", "2"});
  EXPECT_EQ(outcome.code, 5);
  EXPECT_TRUE(holds(outcome.output, "replacement 2 of 2")) << outcome.output;
  EXPECT_LT(outcome.seconds, 10);
  const Outcome wrong = torii_run({"-n", "2", "--on-failure", "replace", "--replacements", "0", "true"});
  EXPECT_EQ(wrong.code, 2);
}

TEST(ToriiRun, TimeoutNamesWhoStillRuns) {
  const Outcome outcome = shell(3, "[ $TORII_RANK = 1 ] && exit 0; sleep 60", {"--timeout", "0.5"});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_TRUE(holds(outcome.output, "the timeout is over; still running: rank 0 (process ")) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, ", rank 2 (process ")) << outcome.output;
  EXPECT_LT(outcome.seconds, 4);
}

TEST(ToriiRun, ForwardsSignals) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string script = "trap 'echo got; exit 0' INT TERM; echo ready; while :; do sleep 0.02; done";
    Process handled({kRun, "-n", "2", "--", "sh", "-c", script});
    ASSERT_TRUE(eventually([&] { return ranks_of(handled.pid()).size() == 2; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // until the shells have set their traps
    handled.kill(signal);
    const Outcome outcome = handled.wait();
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_NE(outcome.output.find("got\n"), outcome.output.rfind("got\n")) << "both ranks must get it";

    Process unhandled({kRun, "-n", "2", "--", "sleep", "60"});
    ASSERT_TRUE(eventually([&] { return ranks_of(unhandled.pid()).size() == 2; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    unhandled.kill(signal);
    EXPECT_EQ(unhandled.wait().code, 128 + signal);
  }
}

TEST(ToriiRun, ASecondSignalKills) {
  Process job({kRun, "-n", "2", "--", "sh", "-c", "trap '' INT TERM; while :; do sleep 0.02; done"});
  ASSERT_TRUE(eventually([&] { return ranks_of(job.pid()).size() == 2; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  job.kill(SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_TRUE(exists(job.pid()));
  job.kill(SIGINT);
  EXPECT_EQ(job.wait(5).code, 128 + SIGKILL);
}

TEST(ToriiRun, LeavesNoGrandchildren) {
  const Outcome outcome = shell(2, "sleep 60 >/dev/null 2>&1 & echo stray $!; exit 0");
  EXPECT_EQ(outcome.code, 0);
  int strays = 0;
  for (std::size_t at = outcome.output.find("stray "); at != std::string::npos;
       at = outcome.output.find("stray ", at + 1)) {
    ++strays;
    EXPECT_FALSE(exists(static_cast<pid_t>(std::stol(outcome.output.substr(at + 6)))));
  }
  EXPECT_EQ(strays, 2);
}

/// Private /dev/shm and /tmp for this process and its children, so that nobody else's files are seen; the programs move
/// along. False when this user may not mount.
class Residue : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    namespace fs = std::filesystem;
    launcher_ = kRun;
    rank_program_ = helper("join_rank");
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // ranks of a killed torii-run become ours, so that their end can be waited for
    if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
    if (mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64m") != 0) return;
    // Debug builds are large; /dev/shm itself stays as small as in a default container.
    fs::create_directory("/dev/shm/programs");
    if (mount("tmpfs", "/dev/shm/programs", "tmpfs", 0, "size=512m") != 0) return;
    fs::copy_file(kRun, "/dev/shm/programs/torii-run");
    fs::copy_file(helper("join_rank"), "/dev/shm/programs/join_rank");
    if (mount("tmpfs", "/tmp", "tmpfs", 0, "size=64m") != 0) return;
    launcher_ = "/dev/shm/programs/torii-run";
    rank_program_ = "/dev/shm/programs/join_rank";
    private_ = true;
  }

  /// For the tests after these: the programs may be below /tmp.
  static void TearDownTestSuite() {
    if (!private_) return;
    for (const char* folder : {"/tmp", "/dev/shm/programs", "/dev/shm"}) {
      EXPECT_EQ(umount2(folder, MNT_DETACH), 0) << folder;
    }
  }

  static std::set<std::string> files() {
    std::set<std::string> names;
    for (const char* folder : {"/dev/shm", "/tmp"}) {
      for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        // On shared folders other programs come and go, also the folders of tests, torii_test_*; torii's files have its
        // name.
        const std::string path = entry.path().string();
        if (private_ || (holds(path, "torii") && !holds(path, "/torii_test_"))) names.insert(path);
      }
    }
    return names;
  }

  /// Files that were not there `before`.
  static std::set<std::string> files_since(const std::set<std::string>& before) {
    std::set<std::string> names = files();
    std::erase_if(names, [&](const std::string& name) { return before.contains(name); });
    return names;
  }

  static inline std::string launcher_;
  static inline std::string rank_program_;
  static inline bool private_ = false;
};

TEST_F(Residue, KillsAtRandomMomentsLeaveNothing) {
  SCOPED_TRACE(private_ ? "on private folders" : "on shared folders");
  constexpr std::size_t kRanks = 3;
  const std::set<std::string> before = files();
  for (const Seed& seed : seeds_of("test_torii_run", is_full() ? 1000 : 25)) {
    std::mt19937_64 random(seed.value);
    Process job({launcher_, "-n", std::to_string(kRanks), "--", rank_program_, "loop"});
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 60'000));
    const std::vector<pid_t> ranks = ranks_of(job.pid());
    const std::size_t victim = random() % (kRanks + 1);
    const bool kills_launcher = victim >= ranks.size();
    kill(kills_launcher ? job.pid() : ranks[victim], SIGKILL);
    const Outcome outcome = job.wait(10);
    EXPECT_EQ(outcome.code, 128 + SIGKILL) << seed << ": " << outcome.output;
    EXPECT_FALSE(holds(outcome.output, "deadline")) << seed << ": " << outcome.output;
    // Everything the job started is gone; what torii-run could no longer collect comes to us.
    EXPECT_TRUE(eventually([] { return waitpid(-1, nullptr, WNOHANG) < 0; })) << seed;
    if (HasFailure()) break;
  }
  // Files that the job leaves stay; those of other programs that use torii disappear with the programs.
  std::set<std::string> left;
  EXPECT_TRUE(eventually([&] { return (left = files_since(before)).empty(); })) << testing::PrintToString(left);
}

TEST_F(Residue, AFileThatStaysIsSeen) {
  const std::set<std::string> before = files();
  for (const std::string folder : {"/dev/shm", "/tmp"}) {
    const std::string planted = folder + "/torii-planted-" + std::to_string(getpid());
    std::ofstream(planted) << "left";
    EXPECT_TRUE(files_since(before).contains(planted));
    std::filesystem::remove(planted);
    EXPECT_FALSE(files_since(before).contains(planted));
  }
}

}  // namespace
}  // namespace torii::tests
