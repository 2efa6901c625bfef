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
  EXPECT_FALSE(own.calls.refused_here_alone(peer.published, 100)) << "this rank has refused nothing";
  own.refuse(5, "result is NULL");
  EXPECT_FALSE(own.calls.refused_here_alone(peer.published, 0)) << "nothing is known of the peer";
  EXPECT_FALSE(own.calls.refused_here_alone(peer.published, 4)) << "the peer may yet refuse call 5";
  const auto found = own.calls.refused_here_alone(peer.published, 5);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->sequence, 5U);
  EXPECT_STREQ(found->notice.text.data(), "result is NULL");
  peer.refuse(5);
  EXPECT_FALSE(own.calls.refused_here_alone(peer.published, 5));
}

/// The peer made the first call of the run, and does not come to the last one.
TEST(RefusedCalls, APeerNeedNotPassTheWholeRun) {
  Rank own;
  Rank peer;
  for (std::uint64_t sequence = 3; sequence <= 14; ++sequence) own.refuse(sequence);
  EXPECT_FALSE(own.calls.refused_here_alone(peer.published, 2));
  const auto found = own.calls.refused_here_alone(peer.published, 4);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->sequence, 3U);
  peer.refuse(3);
  peer.refuse(4);
  EXPECT_FALSE(own.calls.refused_here_alone(peer.published, 4));
  EXPECT_EQ(own.calls.refused_here_alone(peer.published, 5)->sequence, 5U);
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
      // The other side finds the same.
      EXPECT_FALSE(peer.calls.refused_here_alone(own.published, made - 1));
      const auto missed = peer.calls.refused_here_alone(own.published, made);
      ASSERT_TRUE(missed) << made;
      EXPECT_EQ(missed->sequence, made);
      EXPECT_EQ(missed->notice.text.data(), row.told(made));
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
  // The other side finds the same, also when this rank has refused a part of the runs.
  const auto missed = peer.calls.refused_here_alone(own.published, 1000);
  ASSERT_TRUE(missed);
  EXPECT_EQ(missed->sequence, 5U);
  EXPECT_STREQ(missed->notice.text.data(), "run 0");
  for (std::uint64_t sequence = 5; sequence < 25; ++sequence) own.refuse(sequence);
  for (std::uint64_t sequence = 105; sequence < 115; ++sequence) own.refuse(sequence);
  const auto later = peer.calls.refused_here_alone(own.published, 1000);
  ASSERT_TRUE(later);
  EXPECT_EQ(later->sequence, 115U);
  EXPECT_STREQ(later->notice.text.data(), "run 1");
}

/// The sum of its words does not fit: it may have told of any call.
TEST(RefusedCalls, NothingCountsWhileThePeerWritesANotice) {
  Rank own;
  Rank peer;
  own.refuse(5);
  peer.refuse(9);
  ASSERT_TRUE(own.calls.refused_here_alone(peer.published, 9));
  ++peer.published[1].last;
  EXPECT_FALSE(own.calls.refused_here_alone(peer.published, 9));
  peer.published[1] = {};
  peer.published[2].number = 2;
  EXPECT_FALSE(own.calls.refused_here_alone(peer.published, 9)) << "the first word of a notice";
}

/// The peer has made more runs than it has places, since its reasons differ. It may have refused all calls before the
/// oldest run that it still tells of.
TEST(RefusedCalls, OverwrittenNoticesOfThePeerCountAsRefusals) {
  constexpr std::uint64_t kRuns = 2 * kNotices + 3;
  constexpr std::uint64_t kOldest = 10 * (kRuns - kNotices + 1);
  Rank peer;
  for (std::uint64_t run = 1; run <= kRuns; ++run) peer.refuse(10 * run);
  for (std::uint64_t run = 1; run <= kRuns; ++run) {
    Rank own;
    own.refuse(10 * run);
    EXPECT_FALSE(own.calls.refused_here_alone(peer.published, 1000)) << "both have refused call " << 10 * run;
  }
  for (const std::uint64_t sequence : {kOldest - 1, kOldest + 1}) {
    Rank own;
    own.refuse(sequence);
    EXPECT_EQ(own.calls.refused_here_alone(peer.published, 1000).has_value(), sequence > kOldest) << sequence;
  }
  Rank all;
  for (std::uint64_t sequence = kOldest - 5; sequence <= kOldest + 5; ++sequence) all.refuse(sequence);
  EXPECT_EQ(all.calls.refused_here_alone(peer.published, 1000)->sequence, kOldest + 1);
}

/// Run 1 was read before it was overwritten, run 2 was to be read afterwards.
TEST(RefusedCalls, AnOldNoticeSaysNothingOfThoseAfterIt) {
  Rank peer;
  peer.refuse(10);
  const RefusalNotice first = peer.published[1];
  for (std::uint64_t run = 2; run <= kNotices + 2; ++run) peer.refuse(10 * run);
  peer.published[1] = first;
  Rank own;
  own.refuse(20);
  EXPECT_FALSE(own.calls.refused_here_alone(peer.published, 10 * kNotices)) << "both have refused call 20";
  own.refuse(35);
  const auto found = own.calls.refused_here_alone(peer.published, 10 * kNotices);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->sequence, 35U);
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
