// SPDX-License-Identifier: Apache-2.0
// What a rank finds out about the members that it watches, and its texts: no rank runs here.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/calls/call_spec.hpp"
#include "api/running/findings.hpp"

namespace torii {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::uint64_t kOwnCall = 9;

CallSnapshot sum_of(std::uint64_t count, std::uint32_t signature = 11, std::uint64_t sequence = kOwnCall) {
  CallSnapshot call;
  call.sequence = sequence;
  call.count = count;
  call.kind = pack_kind(signature, static_cast<std::uint8_t>(Collective::allreduce),
                        static_cast<std::uint8_t>(Type::f32), static_cast<std::uint8_t>(Op::sum));
  return call;
}

/// Rank 1 of four waits in call 9, an allreduce, and watches the three others, which are well. Its team has a deadline
/// of 2 s, and rank 3 is on another node.
struct Scene {
  Scene() {
    own.member = 1;
    own.host = "a";
    own.sequence = kOwnCall;
    own.last_settled = kOwnCall;
    own.refused = &refused;
    own.now_ns = 9000 * kMs;
    own.timeout_ns = own.team_timeout_ns = 2000 * kMs;
    own.calls = records;
    own.call = [] { return "allreduce of 4 x f32, op sum"; };
    own.phase = [] { return "at its end"; };
    record(sum_of(4));
    for (const int member : {0, 2, 3}) {
      MemberView& view = watched.emplace_back();
      view.member = member;
      view.host = member == 3 ? "b" : "a";
      view.is_distant = member == 3;
      view.has_come = true;
      view.attentive_ns = own.now_ns;
      view.refusals = notices[member];
    }
  }
  MemberView& view(int member) { return watched[member == 0 ? 0U : static_cast<std::size_t>(member - 1)]; }
  void record(const CallSnapshot& call) { records[record_index(call.sequence)] = call; }
  void refuse(int member, std::uint64_t sequence) {
    const RefusalNotice& notice = theirs[member].add(sequence, "result is NULL");
    write_notice(notices[member][notice.number % kNotices], notice);
  }

  std::array<CallSnapshot, kCallRecords> records{};
  RefusedCalls refused;
  RefusedCalls theirs[4];
  RefusalNotices notices[4] = {};
  std::vector<MemberView> watched;
  OwnView own;
};

void expect(const std::optional<Finding>& found, Status status, int member, const std::string& text) {
  ASSERT_TRUE(found);
  EXPECT_EQ(found->status, status);
  EXPECT_EQ(found->member, member);
  EXPECT_EQ(found->text, text);
}

TEST(Findings, NothingAmongMembersThatAreWell) {
  const Scene scene;
  EXPECT_FALSE(find_refused_call(scene.watched, scene.own));
  EXPECT_FALSE(find_dead_member(scene.watched, scene.own));
  EXPECT_FALSE(find_other_call(scene.watched, scene.own));
  EXPECT_FALSE(find_departed_member(scene.watched, scene.own));
  EXPECT_FALSE(find_awaited_departed(scene.watched, scene.own));
  EXPECT_EQ(departed_and_awaited(scene.watched), -1);
}

TEST(Findings, NothingWithoutMembersToWatch) {
  const Scene scene;
  EXPECT_FALSE(find_refused_call({}, scene.own));
  EXPECT_FALSE(find_dead_member({}, scene.own));
  EXPECT_FALSE(find_other_call({}, scene.own));
  EXPECT_FALSE(find_departed_member({}, scene.own));
  EXPECT_FALSE(find_awaited_departed({}, scene.own));
  EXPECT_EQ(find_silent_members({}, scene.own).member, 1);
}

TEST(FindRefusedCall, OfAMemberAlone) {
  Scene scene;
  scene.refuse(2, 5);
  scene.own.last_settled = 4;
  EXPECT_FALSE(find_refused_call(scene.watched, scene.own)) << "this rank may yet refuse call 5";
  scene.own.last_settled = 5;
  expect(find_refused_call(scene.watched, scene.own), Status::mismatch, 2,
         "calls differ: rank 2 on host a refused its call 5 on this team, which other ranks made: result is NULL");
  (void)scene.refused.add(5, "count is too large");
  EXPECT_FALSE(find_refused_call(scene.watched, scene.own)) << "both have refused it";
}

TEST(FindRefusedCall, OfThisRankAlone) {
  Scene scene;
  (void)scene.refused.add(5, "count is too large");
  EXPECT_FALSE(find_refused_call(scene.watched, scene.own)) << "the others may yet refuse it";
  scene.view(2).last_settled = 4;
  EXPECT_FALSE(find_refused_call(scene.watched, scene.own)) << "rank 2 may yet refuse it";
  scene.view(2).last_settled = 5;
  expect(find_refused_call(scene.watched, scene.own), Status::mismatch, 1,
         "calls differ: rank 1 on host a refused its call 5 on this team, which other ranks made: count is too large");
}

/// Rank 2 waits in another team, after one call.
TEST(FindRefusedCall, OfThisRankSeveralTimes) {
  Scene scene;
  for (std::uint64_t call = 3; call <= 8; ++call) (void)scene.refused.add(call, "count is too large");
  scene.view(0).last_settled = 2;
  scene.view(2).last_settled = 3;
  expect(find_refused_call(scene.watched, scene.own), Status::mismatch, 1,
         "calls differ: rank 1 on host a refused its call 3 on this team, which other ranks made: count is too large");
  scene.refuse(2, 3);
  EXPECT_FALSE(find_refused_call(scene.watched, scene.own)) << "both have refused it";
}

TEST(FindDeadMember, NamesTheLowest) {
  Scene scene;
  scene.view(2).is_alive = false;
  scene.view(0).is_alive = false;
  expect(find_dead_member(scene.watched, scene.own), Status::peer_lost, 0,
         "rank 0 on host a died during allreduce of 4 x f32, op sum, noticed by rank 1 at its end");
  scene.view(0).has_ended = true;
  scene.view(2).is_left_out = true;
  expect(find_dead_member(scene.watched, scene.own), Status::peer_lost, 2,
         "rank 2 on host a was left out before allreduce of 4 x f32, op sum, noticed by rank 1 at its end");
}

TEST(FindDeadMember, OfAnotherNodeCountsAfterAMoment) {
  Scene scene;
  scene.view(3).is_alive = false;
  scene.own.attentive_ns = 19 * kMs;
  EXPECT_FALSE(find_dead_member(scene.watched, scene.own));
  scene.own.attentive_ns = 20 * kMs;
  ASSERT_TRUE(find_dead_member(scene.watched, scene.own));
}

TEST(FindOtherCall, NamesBothFromTheLowerRanksSide) {
  Scene scene;
  scene.view(2).call = sum_of(8, 12);
  const char* const kText =
      "calls differ: rank 1 calls allreduce of 4 x f32, op sum, rank 2 calls allreduce of 8 x f32, op sum";
  expect(find_other_call(scene.watched, scene.own), Status::mismatch, 2, kText);
  // The same from the other side.
  Scene other;
  other.own.member = 2;
  other.own.call = [] { return "allreduce of 8 x f32, op sum"; };
  other.record(sum_of(8, 12));
  other.view(0).member = 1;
  other.view(0).call = sum_of(4);
  expect(find_other_call(other.watched, other.own), Status::mismatch, 2, kText);
}

TEST(FindOtherCall, ComparesOnlyCallsThatAreKnown) {
  Scene scene;
  scene.view(0).call = sum_of(4);
  EXPECT_FALSE(find_other_call(scene.watched, scene.own)) << "equal calls";
  scene.view(2).call = sum_of(8, 12, kOwnCall + kSharedRecords);
  EXPECT_FALSE(find_other_call(scene.watched, scene.own)) << "this rank has not come to that call";
}

TEST(FindOtherCall, SaysWhatTheTextsDoNotShow) {
  const auto difference_of = [](const CallSnapshot& ours, const CallSnapshot& theirs, bool is_refused = false) {
    Scene scene;
    scene.own.sequence = 0;  // this rank waits in something else: the text is that of its record
    scene.record(ours);
    scene.view(3).last_call = theirs;
    if (is_refused) scene.refuse(3, 4);
    const std::optional<Finding> found = find_other_call(scene.watched, scene.own);
    if (!found) return std::string("none");
    const std::size_t end = found->text.rfind("op ");
    return found->text.substr(found->text.find_first_of(",;", end));
  };
  EXPECT_EQ(difference_of(sum_of(4, 11), sum_of(4, 12)), ", after calls that differ");
  EXPECT_EQ(difference_of(sum_of(4, 11), sum_of(4, 12), true),
            ", after calls that differ; rank 3 on host b has refused a call: result is NULL");
  EXPECT_EQ(difference_of(sum_of(4, 11), sum_of(4, 11)), "none");
  const auto marked = [](std::uint32_t signature, std::uint64_t mark) {
    CallSnapshot call = sum_of(4, signature);
    call.kind |= mark;
    return call;
  };
  EXPECT_EQ(difference_of(marked(11, kLeavesInRecord), marked(12, kLeavesInRecord)),
            ", over leaves, over other leaves or after calls that differ");
  const auto by_user = [](std::uint32_t signature) {
    CallSnapshot call = sum_of(4, signature);
    call.kind = (call.kind & ~std::uint64_t{0xff}) | static_cast<std::uint64_t>(Op::user);
    return call;
  };
  EXPECT_EQ(difference_of(by_user(11), by_user(12)), ", with other user_bytes or after calls that differ");
  EXPECT_EQ(difference_of(sum_of(kUnequalInRecord, 11), sum_of(kUnequalInRecord, 12)), ", with other counts");
}

TEST(FindDepartedMember, IsOneThatHasNotMadeThisCall) {
  Scene scene;
  scene.view(0).departed_after = kOwnCall;
  EXPECT_FALSE(find_departed_member(scene.watched, scene.own));
  scene.view(3).departed_after = kOwnCall - 1;
  expect(find_departed_member(scene.watched, scene.own), Status::mismatch, 3,
         "rank 3 on host b destroyed the team before it came to allreduce of 4 x f32, op sum");
}

TEST(FindAwaitedDeparted, LetsTheLastMessagesCome) {
  Scene scene;
  scene.view(0).has_departed = true;
  scene.view(3).is_awaited = true;
  EXPECT_EQ(departed_and_awaited(scene.watched), -1);
  scene.view(3).has_departed = true;
  EXPECT_EQ(departed_and_awaited(scene.watched), 3);
  scene.own.quiet_ns = 499 * kMs;
  scene.own.suspected_ns = 500 * kMs;
  EXPECT_FALSE(find_awaited_departed(scene.watched, scene.own)) << "this rank has not waited long";
  scene.own.quiet_ns = 500 * kMs;
  EXPECT_TRUE(find_awaited_departed(scene.watched, scene.own));
  scene.own.suspected_ns = 499 * kMs;
  EXPECT_FALSE(find_awaited_departed(scene.watched, scene.own)) << "messages from another node may be under way";
  scene.view(0).is_awaited = true;
  expect(find_awaited_departed(scene.watched, scene.own), Status::mismatch, 0,
         "rank 0 on host a destroyed the team before it came to allreduce of 4 x f32, op sum");
}

TEST(FindAwaitedDeparted, AShortDeadlineLeavesHalfOfIt) {
  Scene scene;
  scene.own.timeout_ns = 100 * kMs;
  scene.own.quiet_ns = 49 * kMs;
  EXPECT_FALSE(scene.own.waits_long());
  scene.own.quiet_ns = 50 * kMs;
  EXPECT_TRUE(scene.own.waits_long());
}

TEST(FindSilentMembers, NamesTheAbsentThenTheStuck) {
  Scene scene;
  const std::string none = "no progress for 2000 ms in allreduce of 4 x f32, op sum on rank 1 on host a at its end";
  Finding found = find_silent_members(scene.watched, scene.own);
  expect(found, Status::timeout, 1, none);
  EXPECT_TRUE(found.absent.empty());

  scene.view(0).attentive_ns = scene.own.now_ns - 1001 * kMs;
  scene.view(2).has_come = false;
  scene.view(3).has_come = false;
  found = find_silent_members(scene.watched, scene.own);
  expect(found, Status::timeout, 2,
         none +
             "; not come to the call: rank 2 on host a, rank 3 on host b"
             "; in the call but not moving it: rank 0 on host a");
  EXPECT_EQ(found.absent.list(), (std::vector<int>{0, 2, 3}));

  scene.view(2).has_ended = scene.view(3).has_ended = true;
  found = find_silent_members(scene.watched, scene.own);
  expect(found, Status::timeout, 0, none + "; in the call but not moving it: rank 0 on host a");
  EXPECT_EQ(found.absent.list(), std::vector<int>{0});

  // This process did not run either.
  scene.own.resumed_ns = scene.own.now_ns - 1000 * kMs;
  expect(find_silent_members(scene.watched, scene.own), Status::timeout, 1, none);
}

/// A member of another node tells of itself at intervals that the team's deadline decides, not the call's.
TEST(FindSilentMembers, ADeadlineOfTheCallIsForMates) {
  Scene scene;
  scene.own.timeout_ns = 100 * kMs;
  for (MemberView& view : scene.watched) view.attentive_ns -= 60 * kMs;
  EXPECT_EQ(find_silent_members(scene.watched, scene.own).absent.list(), (std::vector<int>{0, 2}));
}

TEST(FindSilentMembers, OfManyNamesFour) {
  Scene scene;
  scene.watched.resize(2);
  for (MemberView& view : scene.watched) view.has_come = false;
  for (int member = 3; member < 1000; ++member) {
    scene.watched.push_back({});
    scene.watched.back().member = member;
    scene.watched.back().host = "c";
  }
  const Finding found = find_silent_members(scene.watched, scene.own);
  EXPECT_NE(found.text.find("; not come to the call: rank 0 on host a, rank 2 on host a, rank 3 on host c, rank 4 on "
                            "host c and 995 more"),
            std::string::npos)
      << found.text;
  EXPECT_EQ(found.absent.count(), 999);
}

TEST(FindSilentPeer, IsTheOtherEndOrNobody) {
  Scene scene;
  scene.own.call = [] { return "send of 4 x f32, tag 3, to rank 2"; };
  const std::string text =
      "no progress for 2000 ms in send of 4 x f32, tag 3, to rank 2 on rank 1 on host a at its end";
  scene.own.timeout_ns = 100 * kMs;
  scene.own.peer = 2;
  Finding found = find_silent_peer(scene.own);
  expect(found, Status::timeout, 2, text);
  EXPECT_EQ(found.absent.list(), std::vector<int>{2});
  for (const int peer : {-1, scene.own.member}) {
    scene.own.peer = peer;
    found = find_silent_peer(scene.own);
    expect(found, Status::timeout, 1, text);
    EXPECT_TRUE(found.absent.empty());
  }
}

}  // namespace
}  // namespace torii
