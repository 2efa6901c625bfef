// SPDX-License-Identifier: Apache-2.0
// A rank whose own words do not leave while all members have come to a call: a timeout says so.
#include <gtest/gtest.h>
#include <torii/torii.h>

#include <string>

#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

TEST(HeldWords, ATimeoutNamesThem) {
  for (const int count : {2, 3, 4}) {
    ThreadTeam ranks;
    ranks.ranks = count;
    ranks.settings = "TRANSPORT=libfabric\nENGINES=1\nTIMEOUT=0.5";
    run_as_threads(ranks, [&](torii_context*, torii_team* team) {
      EXPECT_EQ(torii_barrier(team), TORII_TIMEOUT) << torii_last_error();
      const std::string text = torii_last_error();
      EXPECT_NE(text.find(" at its end, waiting for its own messages to leave"), std::string::npos) << text;
    });
  }
}

}  // namespace
}  // namespace torii::tests
