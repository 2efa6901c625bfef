// SPDX-License-Identifier: Apache-2.0
// Memory that a left-out rank may still store into is not used again, until that rank is dead or has left.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/places.hpp"
#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

Outcome run_ranks(const std::string& ranks, const std::string& what, const std::string& end, int timeout) {
  return run({bin_dir() + "/torii-run", "-n", ranks, "--timeout", "40", "--on-failure", "continue", "--",
              helper("left_out_rank"), what, end},
             {"TORII_TIMEOUT=" + std::to_string(timeout), "TORII_ARENA=256M"});
}

TEST(LeftOut, ARankThatIsStoppedInAStoreChangesNothingLater) {
  for (const std::string kind : {"allocated", "adopted"}) {
    for (const std::string end : {"dies", "departs", "renews"}) {
      SCOPED_TRACE(kind + " " + end);
      const Outcome outcome = run_ranks("2", kind, end, 20);
      EXPECT_NE(outcome.output.find("rank 0 got timeout when "), std::string::npos) << outcome.output;
      EXPECT_NE(outcome.output.find("rank 1 got peer_lost"), std::string::npos) << outcome.output;
      EXPECT_NE(outcome.output.find("\n0 bytes have changed"), std::string::npos) << outcome.output;
      EXPECT_EQ(outcome.output.find("the memory is set aside") != std::string::npos, end != "departs")
          << outcome.output;
      EXPECT_NE(outcome.output.find("the memory is there again"), std::string::npos) << outcome.output;
    }
  }
}

TEST(LeftOut, ARankThatIsStoppedWhileItAsksForSurvivorsHoldsNobodyUp) {
  const Outcome outcome = run_ranks("3", "asks", "", 1);
  EXPECT_NE(outcome.output.find("in the call but not moving it: rank 2 on host "), std::string::npos) << outcome.output;
  for (const char* const line : {"rank 0 has a team", "rank 1 has a team", "rank 2 got peer_lost"}) {
    EXPECT_NE(outcome.output.find(line), std::string::npos) << line << " is missing:\n" << outcome.output;
  }
}

}  // namespace
}  // namespace torii::tests
