// SPDX-License-Identifier: Apache-2.0
// Two members that do not reach each other both decide who survives.
#include <gtest/gtest.h>

#include "api/agreement/agreement_messages.hpp"
#include "tests/api/agreement/messages_seat.hpp"

namespace torii::tests {
namespace {

/// Ranks 0 and 1 do not reach each other, and both decide. Rank 2 reaches both.
TEST(SurvivorDecisions, WhoReachesTwoDecidersGoesWithTheLower) {
  play({0, 1, 2}, 11, [](Seat& seat) {
    SurvivorMessages& messages = seat.survivors();
    ASSERT_TRUE(messages.begin(kNobody));
    if (seat.rank() == 1) messages.decide(members_of(6));
    seat.meet();
    if (seat.rank() == 2) {
      EXPECT_EQ(messages.decision(0), nullptr) << "rank 0 may decide";
      ControlBlocks::Decision& decision = seat.inbox(0).blocks[2].rounds[0].decision;
      decision.members = members_of(5);
      decision.signal = 1;
      ASSERT_NE(messages.decision(0), nullptr);
      EXPECT_EQ(messages.decision(1)->members.words[0], 5U);
      messages.put_made();
    }
    seat.meet();
    if (seat.rank() == 2) {
      EXPECT_TRUE(messages.decides_otherwise(1));
      messages.put_complete();
    }
    seat.meet();
    if (seat.rank() == 1) {
      EXPECT_EQ(messages.decision(1)->members.words[0], 6U) << "its own stands";
      EXPECT_TRUE(messages.decides_otherwise(2));
      EXPECT_FALSE(messages.has_made(2)) << "its object is that of another team";
      EXPECT_FALSE(messages.is_complete());
    }
    seat.meet();
  });
}

/// Where the lower one is not reached, the decision of the next one is taken.
TEST(SurvivorDecisions, ADecisionOfTheLowestThatIsReachedIsTaken) {
  play({0, 1, 2}, 13, [](Seat& seat) {
    SurvivorMessages& messages = seat.survivors();
    ASSERT_TRUE(messages.begin(kNobody));
    if (seat.rank() == 1) messages.decide(members_of(6));
    seat.meet();
    if (seat.rank() == 2) {
      ASSERT_NE(messages.decision(1), nullptr);
      EXPECT_EQ(messages.own_decision().members.words[0], 6U);
      messages.put_made();
    }
    seat.meet();
    if (seat.rank() == 1) {
      EXPECT_TRUE(messages.has_made(2));
    }
    seat.meet();
  });
}

}  // namespace
}  // namespace torii::tests
