// SPDX-License-Identifier: Apache-2.0
// The history in every signal and notices of refused calls keep calls apart.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "api/agreement/refused_calls.hpp"
#include "api/running/call_history.hpp"

namespace torii {
namespace {

constexpr std::uint32_t kSignature = 0x1234567;
constexpr std::uint32_t kOtherSignature = 0x1234569;

TEST(CallHistory, SaltsDifferAfterOneUnlikeCall) {
  for (int before = 0; before < 20; ++before) {
    CallHistory one;
    CallHistory other;
    CallHistory refused;
    for (int i = 0; i < before; ++i) {
      one.add(kSignature);
      other.add(kSignature);
      refused.add(kSignature);
    }
    EXPECT_EQ(one.salt(), other.salt());
    one.add(kSignature);
    other.add(kOtherSignature);
    refused.add_refused();
    for (int i = 0; i < 1000; ++i) {
      ASSERT_NE(one.salt(), other.salt()) << before << " calls before, " << i << " after";
      ASSERT_NE(one.salt(), refused.salt()) << before << " calls before, " << i << " after";
      ASSERT_EQ(one.salt() % 2, 0U);
      one.add(kSignature);
      other.add(kSignature);
      refused.add(kSignature);
    }
  }
}

TEST(CallHistory, EachCallHasASaltOfItsOwn) {
  CallHistory history;
  std::set<std::uint32_t> salts;
  for (int i = 0; i < 10000; ++i) {
    EXPECT_TRUE(salts.insert(history.salt()).second) << "call " << i;
    history.add(kSignature);
  }
}

/// A rank's refused calls, and what its peers see of them.
struct Rank {
  RefusedCalls calls;
  RefusalNotices published{};
  void refuse(std::uint64_t sequence, const std::string& reason = "because") {
    const RefusalNotice& notice = calls.add(sequence, reason);
    write_notice(published[notice.number % kNotices], notice);
  }
};

TEST(RefusedCalls, APeersNoticeCountsWhenTheCallWasMadeHere) {
  Rank own;
  Rank peer;
  peer.refuse(5, "result is NULL");
  EXPECT_FALSE(own.calls.refused_by_peer_alone(peer.published, 4)) << "this rank has not come to call 5";
  const auto notice = own.calls.refused_by_peer_alone(peer.published, 5);
  ASSERT_TRUE(notice);
  EXPECT_EQ(notice->sequence, 5U);
  EXPECT_STREQ(notice->notice.text.data(), "result is NULL");
  own.refuse(5);
  EXPECT_FALSE(own.calls.refused_by_peer_alone(peer.published, 5)) << "both have refused it";
}

TEST(RefusedCalls, AnOwnRefusalCountsWhenThePeerWentOnWithoutOne) {
  Rank own;
  Rank peer;
  own.refuse(5);
  const auto at = [](std::uint64_t last) { return [=](std::uint64_t sequence) { return last > sequence; }; };
  EXPECT_FALSE(own.calls.refused_here_alone(peer.published, at(5))) << "the peer may be about to refuse call 5";
  EXPECT_TRUE(own.calls.refused_here_alone(peer.published, at(6)));
  peer.refuse(5);
  EXPECT_FALSE(own.calls.refused_here_alone(peer.published, at(6)));
}

/// In one run, and in runs between calls that are made.
TEST(RefusedCalls, ManyOnBothSidesAgree) {
  for (const std::uint64_t stride : {1, 2}) {
    Rank own;
    Rank peer;
    for (std::uint64_t sequence = 1; sequence <= 100; sequence += stride) own.refuse(sequence);
    EXPECT_FALSE(peer.calls.refused_by_peer_alone(own.published, 0));
    for (std::uint64_t sequence = 1; sequence <= 100; sequence += stride) {
      peer.refuse(sequence);
      EXPECT_FALSE(peer.calls.refused_by_peer_alone(own.published, sequence));
      EXPECT_FALSE(own.calls.refused_by_peer_alone(peer.published, 100)) << sequence;
    }
  }
}

/// However many calls are refused in a row, the one that the other rank made is found, with its reason or, where
/// reasons change often, that of an earlier one.
TEST(RefusedCalls, AnyCallOfARowIsKnown) {
  const auto never_changes = [](std::uint64_t) { return std::string("because"); };
  const auto changes_once = [](std::uint64_t call) { return std::string(call == 1 ? "the first" : "another"); };
  const auto always_changes = [](std::uint64_t call) { return std::to_string(call); };
  const auto changes_four_times = [](std::uint64_t call) { return std::to_string(std::min<std::uint64_t>(call, 4)); };
  struct Row {
    std::function<std::string(std::uint64_t)> reason;
    std::function<std::string(std::uint64_t)> told;
  };
  for (const Row& row :
       {Row{never_changes, never_changes}, Row{changes_once, changes_once}, Row{always_changes, changes_four_times}}) {
    for (const std::uint64_t made : {1, 2, 3, 9, 50, 100}) {
      Rank own;
      Rank peer;
      for (std::uint64_t sequence = 1; sequence <= 100; ++sequence) peer.refuse(sequence, row.reason(sequence));
      for (std::uint64_t sequence = 1; sequence < made; ++sequence) own.refuse(sequence);
      EXPECT_FALSE(own.calls.refused_by_peer_alone(peer.published, made - 1)) << made;
      const auto found = own.calls.refused_by_peer_alone(peer.published, made);
      ASSERT_TRUE(found) << made;
      EXPECT_EQ(found->sequence, made);
      EXPECT_EQ(found->notice.text.data(), row.told(made));
      // The other side finds a call of its last run once this rank has passed all.
      EXPECT_FALSE(peer.calls.refused_here_alone(own.published, [](std::uint64_t) { return false; }));
      const auto missed = peer.calls.refused_here_alone(own.published, [](std::uint64_t) { return true; });
      ASSERT_TRUE(missed) << made;
      EXPECT_GE(missed->sequence, made);
      EXPECT_EQ(missed->notice.text.data(), row.told(missed->sequence));
    }
  }
}

TEST(RefusedCalls, TheEarliestOfSeveralRunsIsNamed) {
  Rank own;
  Rank peer;
  for (std::uint64_t run = 0; run < kNotices; ++run) {
    for (std::uint64_t i = 0; i < 20; ++i) peer.refuse(100 * run + 5 + i, "run " + std::to_string(run));
  }
  const auto found = own.calls.refused_by_peer_alone(peer.published, 1000);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->sequence, 5U);
  EXPECT_STREQ(found->notice.text.data(), "run 0");
}

TEST(RefusedCalls, AHalfWrittenNoticeIsNone) {
  Rank peer;
  peer.refuse(5);
  RefusalNotice torn = peer.published[1];
  ASSERT_TRUE(read_notice(torn));
  torn.text[0] = 'x';
  EXPECT_FALSE(read_notice(torn));
  EXPECT_FALSE(read_notice(RefusalNotice{}));
  // A part of the first notice, which is written from its beginning.
  RefusalNotice begun{};
  begun.number = peer.published[1].number;
  EXPECT_FALSE(read_notice(begun));
}

TEST(RefusedCalls, ALongReasonIsCut) {
  Rank peer;
  peer.refuse(1, std::string(10000, 'a'));
  const auto notice = read_notice(peer.published[1]);
  ASSERT_TRUE(notice);
  EXPECT_EQ(std::string(notice->text.data()).size(), RefusalNotice::kTextBytes - 1);
}

}  // namespace
}  // namespace torii
