// SPDX-License-Identifier: Apache-2.0
// What members of a team on several nodes tell each other: status lines in any order, proposals at once, decisions of
// members that die. Ranks are threads; between nodes puts arrive late and in any order.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "api/agreement/agreement_messages.hpp"
#include "runtime/base/status.hpp"
#include "runtime/fabric/waiting.hpp"
#include "tests/api/agreement/messages_seat.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

constexpr std::int64_t kMs = 1'000'000;

CallSnapshot standing_of(int rank, std::uint64_t sequence) { return {sequence, 10 * sequence, 77, rank, sequence - 1}; }

TEST(AgreementMessages, TellOtherNodesAndKeepTheLatest) {
  play({0, 0, 1}, 1, [](Seat& seat) {
    // More than there are sources, so some are written anew.
    for (std::uint64_t sequence = 1; sequence <= 20; ++sequence) {
      seat.messages().tell(standing_of(seat.rank(), sequence));
      (void)seat.transport().progress();
    }
    seat.meet();
    for (int member = 0; member < 3; ++member) {
      const bool is_other_node = (member == 2) != (seat.rank() == 2);
      const AgreementMessages::View& view = seat.messages().view(member);
      EXPECT_EQ(view.beat != 0, is_other_node) << seat.rank() << " sees " << member;
      if (!is_other_node) continue;
      EXPECT_EQ(view.snapshot.root, member);
      EXPECT_EQ(view.snapshot.count, 10 * view.snapshot.sequence);
      EXPECT_EQ(view.snapshot.completed, view.snapshot.sequence - 1);
      EXPECT_GT(view.changed_ns, 0);
    }
  });
}

TEST(AgreementMessages, TornAndOlderLinesAreNotBelieved) {
  play({0, 1}, 2, [](Seat& seat) {
    seat.messages().tell(standing_of(seat.rank(), 5));
    seat.meet();
    const int peer = 1 - seat.rank();
    const PeerInbox::Status before = seat.inbox(peer).status;
    const std::int64_t seen_ns = seat.messages().view(peer).changed_ns;
    EXPECT_EQ(seat.messages().view(peer).snapshot.sequence, 5U);
    // Half of a later line; the whole of an earlier one.
    seat.inbox(peer).status.beat += 1;
    seat.inbox(peer).status.snapshot.sequence = 6;
    EXPECT_EQ(seat.messages().view(peer).snapshot.sequence, 5U);
    seat.inbox(peer).status = {};
    EXPECT_EQ(seat.messages().view(peer).snapshot.sequence, 5U);
    seat.inbox(peer).status = before;
    EXPECT_EQ(seat.messages().view(peer).changed_ns, seen_ns);
  });
}

TEST(AgreementMessages, ArePutRarely) {
  play({0, 1}, 3, [](Seat& seat) {
    const auto puts_until = [&](std::int64_t last_ms) {
      const std::uint64_t before = seat.transport().distant_puts();
      for (std::int64_t ms = 0; ms <= last_ms; ++ms) {
        seat.messages().publish(standing_of(0, 1), 5000 * kMs + ms * kMs, 5000 * kMs);
        (void)seat.transport().progress();
        seat.transport().flush();
      }
      return seat.transport().distant_puts() - before;
    };
    EXPECT_EQ(puts_until(99), 0U);
    EXPECT_FALSE(seat.messages().must_report_end());
    // At 100, then 200, 400, 800 and 1000 ms after each other.
    EXPECT_EQ(puts_until(3600), 6U);
    EXPECT_TRUE(seat.messages().must_report_end());
    seat.messages().publish(standing_of(0, 1), 9000 * kMs, 0);
    EXPECT_FALSE(seat.messages().must_report_end());
  });
}

TEST(AgreementMessages, AMemberHasLeftWhenAllEnginesSaySo) {
  play({0, 1, 1}, 4, [](Seat& seat) {
    for (int member = 0; member < 3; ++member) EXPECT_FALSE(seat.messages().has_departed(member));
    seat.meet();
    const auto* const memory = reinterpret_cast<const std::byte*>(&seat.memory());
    // Its memory may be used anew after the very last word only.
    seat.messages().leave(0, ControlWriter::kLeft);
    seat.meet();
    for (int member = 0; member < 3; ++member) {
      EXPECT_TRUE(seat.messages().has_departed(member));
      EXPECT_FALSE(has_departed(memory, member, 3));
    }
    seat.inbox(0).last_words[2] = 0;
    EXPECT_FALSE(seat.messages().has_departed(0));
    seat.meet();
    seat.messages().leave(0, ControlWriter::kDeparted);
    seat.meet();
    for (int member = 0; member < 3; ++member) EXPECT_TRUE(has_departed(memory, member, 3));
    seat.inbox(1).last_words[1] = ControlWriter::kLeft;
    EXPECT_FALSE(has_departed(memory, 1, 3));
  });
}

std::string text_of(const ControlBlocks::CauseBlock* cause) {
  return cause == nullptr ? "none" : std::to_string(cause->status) + " " + cause->text;
}

TEST(AgreementMessages, AllTakeOneCauseHoweverManyPropose) {
  for (const Seed& seed : seeds_of("test_agreement_messages", 30)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed.value);
    std::vector<int> nodes;
    const int ranks = 2 + static_cast<int>(random() % 4);
    for (int rank = 0; rank < ranks; ++rank) nodes.push_back(static_cast<int>(random() % 3));
    const std::uint64_t proposers = random() | 1U << random() % static_cast<unsigned>(ranks);
    std::vector<std::string> causes(static_cast<std::size_t>(ranks));
    play(nodes, seed.value, [&](Seat& seat) {
      if ((proposers >> seat.rank() & 1) != 0) {
        seat.messages().claim(Status::aborted, seat.rank(),
                              "cause of rank " + std::to_string(seat.rank()) +
                                  std::string(static_cast<std::size_t>(600 * (seat.rank() % 2)), 'x'),
                              kNobody);
        EXPECT_TRUE(seat.messages().is_alarmed());
      }
      const std::int64_t begun_ns = now_ns();
      while (!seat.messages().is_alarmed() && now_ns() - begun_ns < kTimeoutNs) (void)seat.transport().progress();
      causes[static_cast<std::size_t>(seat.rank())] = text_of(seat.messages().settle());
      EXPECT_EQ(text_of(seat.messages().settle()), causes[static_cast<std::size_t>(seat.rank())]);
    });
    EXPECT_EQ(std::set<std::string>(causes.begin(), causes.end()).size(), 1U) << causes[0];
    EXPECT_NE(causes[0], "none");
  }
}

TEST(AgreementMessages, WhoHasHeardOfAFailureProposesNothing) {
  play({0, 1}, 5, [](Seat& seat) {
    EXPECT_FALSE(seat.messages().is_alarmed());
    seat.meet();
    if (seat.rank() == 0) seat.messages().claim(Status::timeout, 1, "first", kNobody);
    seat.meet();
    if (seat.rank() == 1) seat.messages().claim(Status::aborted, 1, "second", kNobody);
    seat.meet();
    for (const ControlBlocks& copy : seat.inbox(1).blocks) EXPECT_EQ(copy.cause.signal, 0U);
    EXPECT_EQ(text_of(seat.messages().settle()), std::to_string(static_cast<int>(Status::timeout)) + " first");
  });
}

TEST(AgreementMessages, AnAlarmWithoutACauseEnds) {
  play({0, 1}, 6, [](Seat& seat) {
    seat.memory().alarm = 1;
    const std::int64_t begun_ns = now_ns();
    EXPECT_EQ(seat.messages().settle(), nullptr);
    EXPECT_LT(now_ns() - begun_ns, kTimeoutNs);
  });
}

/// A thread of rank 1 has looked for the alarm before it came, and proposes when its caller has said that it will not.
TEST(AgreementMessages, WhoHasSaidThatItProposesNothingKeepsItsWord) {
  play({0, 1}, 11, [](Seat& seat) {
    if (seat.rank() == 1) {
      EXPECT_EQ(seat.messages().settle(), nullptr);
      seat.messages().claim(Status::aborted, 1, "late", kNobody);
    }
    seat.meet();
    EXPECT_FALSE(seat.messages().is_alarmed());
    for (const ControlBlocks& copy : seat.inbox(1).blocks) EXPECT_EQ(copy.cause.signal, 0U);
  });
}

SurvivorProposal proposal_of(std::uint64_t digest, std::uint64_t staging) {
  SurvivorProposal proposal = {};
  proposal.digest = digest;
  proposal.memory_offset = staging;
  return proposal;
}

TEST(AgreementMessages, ADecisionThatReachedOneReachesAll) {
  play({0, 1, 2}, 7, [](Seat& seat) {
    ASSERT_TRUE(seat.survivors().begin(kNobody));
    seat.survivors().put_proposal(proposal_of(40 + static_cast<std::uint64_t>(seat.rank()), 4096));
    seat.meet();
    for (int member = 0; member < 3; ++member) {
      const SurvivorProposal* const proposal = seat.survivors().proposal(member);
      ASSERT_NE(proposal, nullptr);
      EXPECT_EQ(proposal->digest, 40U + static_cast<std::uint64_t>(member));
      EXPECT_EQ(proposal->memory_offset, 4096U);
    }
    EXPECT_EQ(seat.survivors().decision(0), nullptr);
    seat.meet();
    // Rank 0 decides for 0 and 2, reaches rank 1 only, and ends.
    if (seat.rank() == 1) {
      ControlBlocks::Decision& decision = seat.inbox(0).blocks[2].rounds[0].decision;
      decision.members = members_of(5);
      decision.engines = 2;
      decision.signal = 1;
      ASSERT_NE(seat.survivors().decision(0), nullptr);
    }
    seat.meet();
    if (seat.rank() == 0) return;
    const ControlBlocks::Decision* const decision = seat.survivors().decision(0);
    ASSERT_NE(decision, nullptr);
    EXPECT_EQ(decision->members.words[0], 5U);
    EXPECT_EQ(decision->engines, 2U);
    EXPECT_EQ(seat.survivors().is_left_out(), seat.rank() == 1);
    seat.survivors().decide(members_of(7));  // too late: the other decision stands
    EXPECT_EQ(seat.survivors().decision(0)->members.words[0], 5U);
  });
}

TEST(AgreementMessages, WhatAnyMemberHasMissedIsInTheDecision) {
  play({0, 1, 2}, 9, [](Seat& seat) {
    SurvivorMessages& messages = seat.survivors();
    ASSERT_TRUE(messages.begin(kNobody));
    EXPECT_EQ(messages.missed_from(seat.rank() == 0 ? 1 : 0), 0U) << "nothing is missed of who has made no proposal";
    EXPECT_FALSE(messages.missed_by(0));
    seat.meet();
    messages.put_proposal(proposal_of(1, 64));
    seat.meet();
    if (seat.rank() == 2) seat.inbox(0).probes[0][1] = 0;
    std::uint64_t missed = 0;
    for (int member = 0; member < 3; ++member) missed |= messages.missed_from(member);
    EXPECT_EQ(missed, seat.rank() == 2 ? 2U : 0U);
    messages.put_missed(missed);
    seat.meet();
    EXPECT_EQ(messages.missed_by(2), 2U);
    EXPECT_EQ(messages.missed_by(1), 0U);
    if (seat.rank() == 0) messages.decide(members_of(7));
    seat.meet();
    ASSERT_NE(messages.decision(0), nullptr);
    EXPECT_EQ(messages.decision(0)->engines, 2U);
    EXPECT_EQ(messages.decision(0)->members.words[0], 7U);
    EXPECT_FALSE(messages.has_closed(1));
    seat.meet();
    if (seat.rank() == 1) messages.put_closed();
    seat.meet();
    EXPECT_TRUE(messages.has_closed(1));
    EXPECT_FALSE(messages.has_closed(0));
    seat.meet();
  });
}

RoundFailure failure_of(Status status, const char* text) {
  RoundFailure failure = {};
  failure.status = static_cast<std::int32_t>(status);
  std::strcpy(failure.text, text);
  return failure;
}

/// Rank 0 tells rank 1 only why it leaves, and ends. Rank 2, which has made its object, learns it from rank 1.
TEST(AgreementMessages, AReasonThatReachedOneReachesAll) {
  play({0, 1, 2}, 12, [](Seat& seat) {
    SurvivorMessages& messages = seat.survivors();
    ASSERT_TRUE(messages.begin(kNobody));
    if (seat.rank() != 0) messages.decide(members_of(7));
    seat.meet();
    if (seat.rank() == 1) {
      ControlBlocks::Ending& made = seat.inbox(0).blocks[1].rounds[0].made;
      made.failure = failure_of(Status::no_resource, "out of memory");
      made.signal = ControlBlocks::kIsThere;
      ASSERT_NE(messages.ending(), nullptr);
      messages.leave(messages.ending()->failure, static_cast<int>(messages.ending()->origin));
    }
    if (seat.rank() == 2) messages.put_made();
    seat.meet();
    if (seat.rank() == 0) return;
    ASSERT_NE(messages.ending(), nullptr);
    EXPECT_EQ(messages.ending()->failure.status, static_cast<std::int32_t>(Status::no_resource));
    EXPECT_STREQ(messages.ending()->failure.text, "out of memory");
    EXPECT_EQ(messages.ending()->origin, 0U);
    EXPECT_TRUE(messages.has_made(2));
    EXPECT_FALSE(messages.has_made(1));
    EXPECT_TRUE(messages.has_left(1));
    EXPECT_FALSE(messages.has_left(2));
  });
}

/// Two members leave at once: all report the reason of the lower one, also one that has passed on the other's.
TEST(AgreementMessages, OfTwoReasonsTheLowestMembersIsThatOfAll) {
  play({0, 1, 2, 3}, 13, [](Seat& seat) {
    SurvivorMessages& messages = seat.survivors();
    ASSERT_TRUE(messages.begin(kNobody));
    seat.meet();
    messages.put_proposal(proposal_of(1, 64));
    if (seat.rank() == 1) messages.leave(failure_of(Status::timeout, "of 1"), 1);
    if (seat.rank() == 2) messages.leave(failure_of(Status::mismatch, "of 2"), 2);
    if (seat.rank() == 0) messages.leave(failure_of(Status::mismatch, "of 2"), 2);
    seat.meet();
    ASSERT_NE(messages.ending(), nullptr);
    EXPECT_STREQ(messages.ending()->failure.text, "of 1");
    seat.meet();
  });
}

TEST(AgreementMessages, ARoundThatHasEndedIsPassedOverAndThereAreFour) {
  play({0, 1, 2}, 14, [](Seat& seat) {
    SurvivorMessages& messages = seat.survivors();
    if (seat.rank() != 2) {
      ASSERT_TRUE(messages.begin(kNobody));
    }
    seat.meet();
    if (seat.rank() != 2) {
      messages.put_proposal(proposal_of(1, 64));
      messages.leave(failure_of(Status::timeout, "rank 2 has not come"), seat.rank());
    }
    seat.meet();
    ASSERT_TRUE(messages.begin(kNobody));
    messages.put_proposal(proposal_of(2, 128));
    seat.meet();
    for (int member = 0; member < 3; ++member) {
      ASSERT_NE(messages.proposal(member), nullptr);
      EXPECT_EQ(messages.proposal(member)->digest, 2U) << "all are in the second round";
    }
    EXPECT_EQ(messages.ending(), nullptr);
    // What members that are left out say is no end of a round.
    seat.meet();
    if (seat.rank() == 2) messages.leave(failure_of(Status::mismatch, "alone"), 2);
    seat.meet();
    messages.count_only(members_of(3));
    EXPECT_EQ(messages.ending(), nullptr);
    seat.meet();
    ASSERT_TRUE(messages.begin(kNobody));
    ASSERT_TRUE(messages.begin(kNobody));
    EXPECT_FALSE(messages.begin(kNobody));
    seat.meet();
  });
}

TEST(AgreementMessages, OneThatHasAllObjectsSaysSo) {
  play({0, 1}, 15, [](Seat& seat) {
    SurvivorMessages& messages = seat.survivors();
    ASSERT_TRUE(messages.begin(kNobody));
    EXPECT_FALSE(messages.is_complete());
    messages.decide(members_of(3));
    seat.meet();
    if (seat.rank() == 0) messages.put_complete();
    seat.meet();
    EXPECT_TRUE(messages.is_complete());
    ASSERT_TRUE(messages.begin(kNobody));
    EXPECT_FALSE(messages.is_complete());
    seat.meet();
  });
}

TEST(AgreementMessages, OffersOutsideTheArenaAreRefused) {
  EXPECT_NO_THROW(check_proposal(1, 4096, 4096, 8192));
  for (const std::uint64_t staging : {std::uint64_t{4160}, std::uint64_t{8192}, UINT64_MAX, UINT64_MAX - 4095}) {
    try {
      check_proposal(1, staging, 4096, 8192);
      ADD_FAILURE() << staging;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::transport);
      EXPECT_EQ(error.rank(), 1);
      EXPECT_EQ(std::string(error.what()), "rank 1 offers 4096 bytes at offset " + std::to_string(staging) +
                                               " of its arena, which has 8192 bytes, to the new team");
    }
  }
  EXPECT_THROW(check_proposal(1, 0, 8193, 8192), Error);
}

/// The first engine loses all: what is told once comes all the same.
TEST(AgreementMessages, LettersComeByMoreThanOneEngine) {
  play({0, 1}, 10, [](Seat& seat) {
    seat.transport().lose_engine(0);
    if (seat.rank() == 0) seat.messages().claim(Status::timeout, 1, "a cable is cut", kNobody);
    seat.meet();
    EXPECT_TRUE(seat.messages().is_alarmed());
    EXPECT_EQ(text_of(seat.messages().settle()), std::to_string(static_cast<int>(Status::timeout)) + " a cable is cut");
    ASSERT_TRUE(seat.survivors().begin(kNobody));
    seat.survivors().put_proposal(proposal_of(3, 64));
    seat.meet();
    ASSERT_NE(seat.survivors().proposal(1 - seat.rank()), nullptr);
    EXPECT_EQ(seat.survivors().missed_from(1 - seat.rank()), 1U);
    for (std::uint64_t sequence = 1; sequence <= 3; ++sequence) {
      seat.messages().tell(standing_of(seat.rank(), sequence));
      seat.meet();
    }
    EXPECT_GE(seat.messages().view(1 - seat.rank()).snapshot.sequence, 2U);
  });
}

}  // namespace
}  // namespace torii::tests
