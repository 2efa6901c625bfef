// SPDX-License-Identifier: Apache-2.0
// Ranks as processes on adopted memory of malloc: the same bits as before it was adopted, and children that work.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/places.hpp"
#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

TEST(Adopted, GivesTheSameBits) {
  for (const char* ranks : {"2", "3", "4"}) {
    const Outcome outcome =
        run({bin_dir() + "/torii-run", "-n", ranks, "--timeout", "25", "--", helper("adopted_rank")});
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    for (int rank = 0; rank < std::stoi(ranks); ++rank) {
      const std::string line = "rank " + std::to_string(rank) + ": same bits";
      EXPECT_NE(outcome.output.find(line), std::string::npos) << outcome.output;
    }
  }
}

}  // namespace
}  // namespace torii::tests
