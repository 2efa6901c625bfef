// SPDX-License-Identifier: Apache-2.0
// Bad command lines of the perf binaries: each its own message and exit code. Help and version.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/places.hpp"
#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

Outcome perf(const std::string& program, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), bin_dir() + "/" + program);
  return run(arguments);
}

struct BadLine {
  std::vector<std::string> arguments;
  int code;
  const char* message;
};

class AllReduceCommandLine : public testing::TestWithParam<BadLine> {};

TEST_P(AllReduceCommandLine, IsRefusedWithItsReason) {
  const Outcome outcome = perf("all_reduce_perf", GetParam().arguments);
  EXPECT_EQ(outcome.code, GetParam().code) << outcome.output;
  EXPECT_NE(outcome.output.find(GetParam().message), std::string::npos) << outcome.output;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, AllReduceCommandLine,
    testing::Values(
        BadLine{{"--colour", "red"}, 2, "--colour"}, BadLine{{"-b", "0"}, 2, "-b '0' must be at least 1 byte"},
        BadLine{{"-b", "8Q"}, 2, "-b '8Q' is not a size"}, BadLine{{"-b", "99999999999999999999"}, 2, "overflows"},
        BadLine{{"-e", "1000000G"}, 2, "-e 1000000G overflows the count"},
        BadLine{{"-b", "64K", "-e", "8"}, 2, "-e 8 is smaller than -b 64K"}, BadLine{{"-f", "1"}, 2, "-f"},
        BadLine{{"-f", "2", "-i", "8"}, 2, "-i"}, BadLine{{"-d", "f33"}, 2, "-d 'f33' is unknown"},
        BadLine{{"-o", "average"}, 2, "-o 'average' is unknown"},
        BadLine{{"-o", "band", "-d", "f32"}, 2, "-o band is not defined for -d f32"}, BadLine{{"-n", "0"}, 2, "-n"},
        BadLine{{"-n", "many"}, 2, "-n"}, BadLine{{"--ranks", "0"}, 2, "--ranks"},
        BadLine{{"--memory", "borrowed"}, 2, "--memory 'borrowed' is unknown"},
        BadLine{{"--timing", "fast"}, 2, "--timing 'fast' is unknown"},
        BadLine{{"--json", "-", "--csv", "-"}, 2, "both want stdout"},
        BadLine{{"--json", "no_such_folder/x", "-e", "8"}, 2, "cannot write 'no_such_folder/x'"},
        BadLine{{"--json", "", "-e", "8"}, 2, "--json: its value is empty"},
        BadLine{{"--json", "/dev/full", "-e", "8"}, 2, "cannot write '/dev/full': No space left on device"},
        BadLine{{"--csv", "/dev/full", "-e", "8"}, 2, "cannot write '/dev/full': No space left on device"},
        BadLine{{"--seed", "-1"}, 2, "all_reduce_perf: --seed: -1 is negative; the least is 0; --help lists the flags"},
        BadLine{{"--seed", "99999999999999999999"}, 2, "is too large; the most is 18446744073709551615"},
        BadLine{{"--ranks", "1025"}, 2, "--ranks: Value 1025 not in range 1 to 1024"},
        BadLine{{"--ranks", "2", "--engines", "17"}, 2, "17"},
        BadLine{{"--ranks", "2", "--algorithm", "quantum"}, 2, "quantum"},
        BadLine{{"--ranks", "2", "--topology", "torus:4x"}, 2, "torus:4x"},
        BadLine{{"--ranks", "3", "--topology", "torus:2x2"}, 2, "torus:2x2"}));

TEST(PerfCommandLine, WhatStdoutCannotTakeIsNoSuccess) {
  const std::string bin = bin_dir();
  const Outcome outcome = run({"sh", "-c", bin + "/all_reduce_perf -e 8 >/dev/full"});
  EXPECT_EQ(outcome.code, 2) << outcome.output;
  EXPECT_NE(outcome.output.find("cannot write 'stdout': No space left on device"), std::string::npos) << outcome.output;
}

TEST(PerfCommandLine, ANumberThatIsNoneIsInNoRange) {
  const Outcome outcome = perf("barrier_perf", {"--late=nan", "--ranks=2"});
  EXPECT_EQ(outcome.code, 2) << outcome.output;
  EXPECT_NE(outcome.output.find("--late: nan is no number"), std::string::npos) << outcome.output;
}

TEST(PerfCommandLine, RootMustBeARank) {
  const Outcome outcome = perf("reduce_perf", {"--ranks", "2", "-r", "2"});
  EXPECT_EQ(outcome.code, 2) << outcome.output;
  EXPECT_NE(outcome.output.find("-r 2 is not a rank"), std::string::npos) << outcome.output;
}

TEST(PerfCommandLine, AnAlgorithmThatCannotIsAReason) {
  const Outcome outcome =
      perf("all_reduce_perf", {"--ranks", "3", "-e", "8", "--algorithm", "trinaryx3", "--determinism", "canonical"});
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  EXPECT_NE(outcome.output.find("canonical"), std::string::npos) << outcome.output;
}

TEST(PerfCommandLine, RanksInsideAJobAreRefused) {
  const std::string bin = bin_dir();
  const Outcome outcome =
      run({bin + "/torii-run", "-n", "2", "--", bin + "/all_reduce_perf", "--ranks", "2", "-e", "8"});
  EXPECT_EQ(outcome.code, 2) << outcome.output;
  EXPECT_NE(outcome.output.find("--ranks inside a job"), std::string::npos) << outcome.output;
}

TEST(PerfCommandLine, HelpAndVersion) {
  for (const char* program :
       {"all_reduce_perf", "reduce_perf", "broadcast_perf", "all_gather_perf", "reduce_scatter_perf", "barrier_perf",
        "alltoall_perf", "scatter_perf", "gather_perf", "scan_perf", "exscan_perf", "costs_perf"}) {
    const Outcome help = perf(program, {"--help"});
    EXPECT_EQ(help.code, 0) << program;
    EXPECT_NE(help.output.find("Example:\n  " + std::string(program) + " --ranks 2"), std::string::npos) << help.output;
    const Outcome version = perf(program, {"--version"});
    EXPECT_EQ(version.code, 0) << program;
    EXPECT_EQ(version.output.rfind("torii ", 0), 0u) << version.output;
  }
}

TEST(PerfCommandLine, BlockedRanksAreCounted) {
  const Outcome counted = perf("barrier_perf", {"--ranks", "3", "--late", "0.3"});
  EXPECT_EQ(counted.code, 0) << counted.output;
  EXPECT_NE(counted.output.find("2 ranks blocked for 0."), std::string::npos) << counted.output;
  const Outcome refused = perf("barrier_perf", {"--ranks", "2", "--late", "0.1", "--most", "0.01"});
  EXPECT_EQ(refused.code, 1) << "nobody waits for nothing: " << refused.output;
  EXPECT_NE(refused.output.find("--most"), std::string::npos) << refused.output;
}

TEST(PerfCommandLine, ALateRankNeedsOneThatWaits) {
  const Outcome alone = perf("barrier_perf", {"--ranks", "1", "--late", "0.1"});
  EXPECT_EQ(alone.code, 2) << alone.output;
  EXPECT_NE(alone.output.find("at least 2 ranks"), std::string::npos) << alone.output;
  const Outcome never = perf("barrier_perf", {"--ranks", "2", "--late", "-1"});
  EXPECT_EQ(never.code, 2) << never.output;
  EXPECT_NE(never.output.find("--late"), std::string::npos) << never.output;
  EXPECT_EQ(perf("barrier_perf", {"--late", "1", "--help"}).code, 0);
}

TEST(PerfCommandLine, BarrierTakesNoSizes) {
  const Outcome outcome = perf("barrier_perf", {"-b", "8"});
  EXPECT_EQ(outcome.code, 2) << outcome.output;
}

}  // namespace
}  // namespace torii::tests
