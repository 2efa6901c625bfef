// SPDX-License-Identifier: Apache-2.0
// Memory that a left-out rank may still store into is not used again, until that rank is dead or has left.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/places.hpp"
#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

TEST(LeftOut, ARankThatIsStoppedInAStoreChangesNothingLater) {
  for (const std::string kind : {"allocated", "adopted"}) {
    for (const std::string end : {"dies", "departs"}) {
      SCOPED_TRACE(kind + " " + end);
      const Outcome outcome = run({bin_dir() + "/torii-run", "-n", "2", "--timeout", "25", "--on-failure", "continue",
                                   "--", helper("left_out_rank"), kind, end},
                                  {"TORII_TIMEOUT=1", "TORII_ARENA=400M"});
      EXPECT_NE(outcome.output.find("rank 0 got timeout when "), std::string::npos) << outcome.output;
      EXPECT_NE(outcome.output.find("rank 1 got peer_lost"), std::string::npos) << outcome.output;
      EXPECT_NE(outcome.output.find("\n0 bytes have changed"), std::string::npos) << outcome.output;
      EXPECT_EQ(outcome.output.find("the memory is set aside") != std::string::npos, end == "dies") << outcome.output;
      EXPECT_NE(outcome.output.find("the memory is there again"), std::string::npos) << outcome.output;
    }
  }
}

}  // namespace
}  // namespace torii::tests
