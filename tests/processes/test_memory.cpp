// SPDX-License-Identifier: Apache-2.0
// Too little memory is an error with the number, never a signal: in a control group with a limit, with little address
// space, and in a process that locks what it maps.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "tests/support/places.hpp"
#include "tests/support/process.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

namespace fs = std::filesystem;

const std::string kRank = helper("memory_rank");

/// The number behind `name` in the output.
std::size_t number_of(const Outcome& outcome, const std::string& name) {
  const std::size_t at = outcome.output.find(name);
  EXPECT_NE(at, std::string::npos) << outcome.output;
  return at == std::string::npos ? 0 : std::stoull(outcome.output.substr(at + name.size()));
}

/// A memory control group of version 1 or 2 with a limit; its folder is empty where none can be made.
class Group {
 public:
  explicit Group(std::size_t limit_bytes) {
    for (const fs::path top : {"/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"}) {
      const fs::path folder = top / ("torii-test-" + std::to_string(getpid()));
      std::error_code failure;
      if (!fs::exists(top / "cgroup.procs") || !fs::create_directory(folder, failure)) continue;
      for (const char* const name : {"memory.limit_in_bytes", "memory.max"}) {
        if (!fs::exists(folder / name)) continue;
        std::ofstream file(folder / name);
        if (file << limit_bytes << std::flush) folder_ = folder;
      }
      if (!folder_.empty()) return;
      fs::remove(folder, failure);
    }
  }
  ~Group() {
    // The kernel needs a moment after the last process has ended.
    std::error_code failure;
    for (int i = 0; i < 100 && !folder_.empty() && fs::exists(folder_); ++i) {
      if (fs::remove(folder_, failure)) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  const fs::path& folder() const { return folder_; }

 private:
  fs::path folder_;
};

TEST(Memory, AControlGroupsLimitIsAnError) {
  for (const char* const piece : {"1048576", "209715200"}) {
    const Group group(std::size_t{300} << 20);
    if (group.folder().empty()) GTEST_SKIP() << "no memory control group can be made here (needs root)";
    const Outcome outcome = run({kRank, "group", group.folder().string(), piece});
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_TRUE(holds(outcome.output, "allocate: no_resource: an allocation of " + std::string(piece) +
                                          " bytes exceeds the memory that is available: "))
        << outcome.output;
    EXPECT_TRUE(holds(outcome.output, "left of the control group's limit of 314572800 bytes")) << outcome.output;
    EXPECT_GE(number_of(outcome, "allocated MiB: "), 200U);
    EXPECT_TRUE(holds(outcome.output, "calls: ")) << "ended by a signal: " << outcome.output;
  }
}

/// Staging is taken when a plan is put in place, where memory is short.
TEST(Memory, ACallThatFindsNoneLeftIsAnError) {
  const Group group(std::size_t{96} << 20);
  if (group.folder().empty()) GTEST_SKIP() << "no memory control group can be made here (needs root)";
  const std::string torii_run = bin_dir() + "/torii-run";
  const Outcome outcome = run({torii_run, "-n", "2", "--", kRank, "group", group.folder().string()});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "calls: no_resource: ")) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "left of the control group's limit of 100663296 bytes")) << outcome.output;
}

TEST(Memory, LittleAddressSpaceIsAnError) {
  Outcome outcome = run({kRank, "address", std::to_string(std::size_t{200} << 20)});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(holds(outcome.output,
                    "this process cannot map 1 arenas of even 256 MiB: its limits "
                    "are: address space (ulimit -v) 209715200 bytes"))
      << outcome.output;
  outcome = run({kRank, "address", std::to_string(std::size_t{1500} << 20)});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "context: ok")) << "half an arena can be mapped: " << outcome.output;
}

/// Plans and rings are kept, with a bound, whatever the number of shapes; 10,000 of them on 8 ranks take 3.3 MiB. With
/// memory for each shape it would be hundreds of MiB.
TEST(Memory, CallsOfManyShapesTakeLittle) {
  const std::string shapes = is_full() ? "10000" : "3000";
  const std::string ranks = is_full() ? "8" : "4";
  const Outcome outcome = run({bin_dir() + "/torii-run", "-n", ranks, "--", helper("shapes_rank"), shapes});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_LT(number_of(outcome, "a rank has grown by "), is_full() ? 5000U : 2500U);
}

/// The arena is locked page by page, as it is touched.
TEST(Memory, AProcessThatLocksWhatItMapsTakesNoWholeArena) {
  Outcome outcome = run({kRank, "locked"});
  if (outcome.code == 3) GTEST_SKIP() << "mlockall is refused here";
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "context: ok")) << outcome.output;
  EXPECT_LT(number_of(outcome, "resident MiB: "), 200U);
}

TEST(Memory, ALimitOfLockedMemoryIsNamed) {
  const Outcome outcome = run({kRank, "locked-limited"});
  if (outcome.code == 3) GTEST_SKIP() << "mlockall is refused here";
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(holds(outcome.output,
                    "this process cannot map 1 arenas of even 256 MiB: the process "
                    "locks what it maps (mlockall), and its limit of locked memory (ulimit -l) is "
                    "4194304 bytes"))
      << outcome.output;
}

}  // namespace
}  // namespace torii::tests
