// SPDX-License-Identifier: Apache-2.0
// Members that leave a split when the team fails: all have their part, or none has, also when a member dies meanwhile.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "api/agreement/split_decision.hpp"
#include "runtime/base/deadline.hpp"
#include "runtime/base/status.hpp"
#include "tests/api/agreement/messages_seat.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

using Outcome = std::optional<bool>;
constexpr Outcome kMade = true;
constexpr Outcome kNotMade = false;
constexpr Outcome kUnknown = {};

bool all_live(int) { return true; }

/// A member's decisions about the splits of its team.
class Member {
 public:
  explicit Member(Seat& seat, int ranks, std::int64_t timeout_ns = kTimeoutNs)
      : seat_(seat), decision_(seat.transport(), seat.messages(), seat.rank(), ranks, timeout_ns) {}
  /// The messages of a split have come.
  Outcome leave() { return decide(true, all_live); }
  /// The failure has come before them.
  Outcome fail(const std::function<bool(int)>& lives = all_live) {
    while (!seat_.messages().is_alarmed()) (void)seat_.transport().progress();
    (void)seat_.messages().settle();
    return decide(false, lives);
  }
  Outcome decide(bool agreed, const std::function<bool(int)>& lives) {
    return decision_.decide(agreed, Waiting(seat_.transport(), WaitMode::automatic, kTimeoutNs), lives);
  }
  void abort() { seat_.messages().claim(Status::aborted, seat_.rank(), "needs the team no more", kNobody); }

 private:
  Seat& seat_;
  SplitDecision decision_;
};

TEST(SplitDecision, ALateMemberFollowsOneThatLeft) {
  play({0, 1, 2}, 1, [](Seat& seat) {
    Member member(seat, 3);
    EXPECT_EQ(member.leave(), kMade);
    seat.meet();
    if (seat.rank() != 1) {
      EXPECT_EQ(member.fail(), kMade);
      return;
    }
    EXPECT_EQ(member.leave(), kMade);
    member.abort();
  });
}

TEST(SplitDecision, NoMemberHasAPartThatNobodySawMade) {
  play({0, 1, 2}, 2, [](Seat& seat) {
    Member member(seat, 3);
    EXPECT_EQ(member.leave(), kMade);
    seat.meet();
    if (seat.rank() == 1) member.abort();
    const std::int64_t begun_ns = now_ns();
    EXPECT_EQ(member.fail(), kNotMade);
    EXPECT_LT(now_ns() - begun_ns, kTimeoutNs / 4);
  });
}

/// Another operation of the team may have failed, so that the member has said so, while the messages came.
TEST(SplitDecision, MessagesAfterTheWordAboutTheFailureDoNotCount) {
  play({0, 1}, 3, [](Seat& seat) {
    Member member(seat, 2);
    if (seat.rank() == 0) member.abort();
    while (!seat.messages().is_alarmed()) (void)seat.transport().progress();
    (void)seat.messages().settle();
    EXPECT_EQ(member.decide(seat.rank() == 1, all_live), kNotMade);
  });
}

/// Rank 0 tells rank 1 only, and dies.
TEST(SplitDecision, WhatADeadMemberToldOneIsPassedOn) {
  play({0, 1, 2, 3}, 4, [](Seat& seat) {
    Member member(seat, 4);
    if (seat.rank() == 0) {
      member.abort();
      seat.transport().flush();
    }
    seat.meet();
    if (seat.rank() == 0) return;
    if (seat.rank() == 1) seat.inbox(0).splits = 2;
    EXPECT_EQ(member.fail([](int rank) { return rank != 0; }), kMade) << seat.rank();
  });
}

TEST(SplitDecision, AMemberThatDiesWithoutAWordLeavesItOpen) {
  play({0, 1, 2}, 5, [](Seat& seat) {
    Member member(seat, 3);
    if (seat.rank() == 0) member.abort();
    seat.meet();
    if (seat.rank() == 0) return;
    EXPECT_EQ(member.fail([](int rank) { return rank != 0; }), kUnknown) << seat.rank();
  });
}

/// Rank 0 has all messages, but is stopped until the others have given it up.
TEST(SplitDecision, AStoppedMemberFollowsThoseThatGaveUp) {
  play({0, 1, 2}, 6, [](Seat& seat) {
    Member member(seat, 3, kTimeoutNs / 100);
    if (seat.rank() == 1) member.abort();
    seat.meet();
    const Outcome others = seat.rank() == 0 ? kUnknown : member.fail();
    EXPECT_EQ(others, kUnknown);
    seat.meet();
    const Outcome stopped = seat.rank() == 0 ? member.leave() : kNotMade;
    EXPECT_EQ(stopped, kNotMade);
  });
}

/// A transport that takes in the words of the others behind the messages, one call later.
class Behind final : public Distant {
 public:
  explicit Behind(Seat& seat) : Distant(seat.transport(), {}, 1), seat_(seat) {}
  Status progress() noexcept override {
    for (const int member : {1, 2}) seat_.inbox(member).splits = 1;
    return seat_.transport().progress();
  }

 private:
  Seat& seat_;
};

TEST(SplitDecision, AStoppedMemberLooksForTheWordsOfTheOthers) {
  play({0, 1, 2}, 7, [](Seat& seat) {
    if (seat.rank() != 0) return;
    Behind behind(seat);
    SplitDecision decision(behind, seat.messages(), 0, 3, kTimeoutNs);
    EXPECT_EQ(decision.decide(true, Waiting(behind, WaitMode::automatic, kTimeoutNs), all_live), kNotMade);
  });
}

/// Some members leave, others find the failure first, each in its own time.
TEST(SplitDecision, AllMembersDecideAlike) {
  for (const Seed& seed : seeds_of("test_split_decision", 15)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed.value);
    std::vector<int> nodes;
    const int ranks = 2 + static_cast<int>(random() % 4);
    for (int rank = 0; rank < ranks; ++rank) nodes.push_back(static_cast<int>(random() % 3));
    const std::uint64_t leaving = seed.value % 3 == 0 ? 0 : random();
    const std::uint64_t delays = random();
    std::vector<Outcome> outcomes(static_cast<std::size_t>(ranks));
    std::atomic<int> left = 0;
    play(nodes, seed.value, [&](Seat& seat) {
      Member member(seat, ranks);
      const auto until_ns = now_ns() + static_cast<std::int64_t>(delays >> 4 * seat.rank() & 7) * 100'000;
      while (now_ns() < until_ns) (void)seat.transport().progress();
      if (seat.rank() == 0) member.abort();
      const bool leaves = (leaving >> seat.rank() & 1) != 0;
      if (leaves) ++left;
      outcomes[static_cast<std::size_t>(seat.rank())] = leaves ? member.leave() : member.fail();
    });
    for (const Outcome& one : outcomes) EXPECT_EQ(one, Outcome(left > 0));
  }
}

}  // namespace
}  // namespace torii::tests
