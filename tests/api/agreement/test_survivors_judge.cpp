// SPDX-License-Identifier: Apache-2.0
// Who the survivors are, where ranks are not reached any more, and where some know more than others.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/agreement/survivors_judge.hpp"

namespace torii {
namespace {

MemberSet set_of(const std::vector<int>& members) {
  MemberSet set = {};
  for (const int member : members) set.add(member);
  return set;
}

/// Four members between nodes as one of them sees them. All that are reached have come, with one digest.
class View final : public RoundView {
 public:
  explicit View(int rank) : rank_(rank) {
    for (SurvivorProposal& one : proposals) one = {};
  }
  int rank() const override { return rank_; }
  int ranks() const override { return 4; }
  bool has_come(int member) const override { return reached.has(member); }
  SurvivorProposal proposal(int member) const override { return proposals[member]; }
  bool lives(int member) const override { return reached.has(member); }
  bool may_live(int member) const override { return !dead.has(member); }
  bool may_be_divided() const override { return true; }
  std::string text(const std::vector<int>&) const override { return "ranks"; }

  MemberSet reached = set_of({0, 1, 2, 3});
  MemberSet dead = {};
  SurvivorProposal proposals[4];

 private:
  int rank_;
};

void expect_chooses(const View& view, const std::vector<int>& members) {
  const Judgement found = judge(view, come_to(view));
  EXPECT_EQ(found.verdict, Judgement::Verdict::chooses);
  EXPECT_EQ(found.members.list(), members);
}

/// A switch fails, and resets all streams between two halves: both ask for survivors, and one of them gets a team.
TEST(SurvivorsJudge, ABrokenStreamProvesNoDeath) {
  View low(1);
  low.reached = set_of({0, 1});
  expect_chooses(low, {0, 1});

  View high(2);
  high.reached = set_of({2, 3});
  const Judgement found = judge(high, come_to(high));
  EXPECT_EQ(found.verdict, Judgement::Verdict::waits) << "for the proof that the others are dead";
  EXPECT_EQ(found.members.list(), (std::vector<int>{0, 1}));
  const RoundFailure late = judge_late(high, come_to(high), found, 1);
  EXPECT_EQ(late.status, static_cast<std::int32_t>(Status::invalid_argument)) << late.text;
  EXPECT_NE(std::string(late.text).find("would be 2 of 4 ranks"), std::string::npos) << late.text;

  high.dead = set_of({0, 1});
  expect_chooses(high, {2, 3});
}

TEST(SurvivorsJudge, MostOfTheRanksWaitForNoProof) {
  View view(1);
  view.reached = set_of({1, 2, 3});
  expect_chooses(view, {1, 2, 3});
}

/// Ranks 0 and 1 have lost each other, and now 1 loses 2 as well, with which it was to make a team: 0 and 2 may have
/// one.
TEST(SurvivorsJudge, WhoIsLeftAloneByCutsHasNoTeam) {
  View view(1);
  view.reached = set_of({1});
  view.dead = set_of({3});
  const Judgement found = judge_ready(view, set_of({1}));
  EXPECT_EQ(found.verdict, Judgement::Verdict::fails);
  EXPECT_NE(std::string(found.failure.text).find("would be 1 of 3 ranks"), std::string::npos) << found.failure.text;
  EXPECT_EQ(judge_ready(view, set_of({1, 2})).verdict, Judgement::Verdict::chooses) << "2 has made its object";

  view.dead = set_of({0, 2, 3});
  EXPECT_EQ(judge_ready(view, set_of({1})).verdict, Judgement::Verdict::chooses) << "nobody else lives";
  view.dead = {};
  view.proposals[1].allows_minority = 1;
  EXPECT_EQ(judge_ready(view, set_of({1})).verdict, Judgement::Verdict::chooses);
}

/// The ranks that are left out live, as this rank sees: no proof can come.
TEST(SurvivorsJudge, TooFewAreToldSoAtOnce) {
  View view(2);
  for (const int member : {2, 3}) view.proposals[member].without = set_of({0, 1});
  EXPECT_EQ(judge(view, come_to(view)).verdict, Judgement::Verdict::fails);
  view.reached = set_of({2, 3});  // a team of survivors has left the others out
  EXPECT_EQ(judge(view, come_to(view)).verdict, Judgement::Verdict::fails);
  for (SurvivorProposal& one : view.proposals) one.allows_minority = 1;
  expect_chooses(view, {2, 3});
}

/// Calls are equal, but a member has lost another one in another team, which not all know.
TEST(SurvivorsJudge, WhoIsLostForOneIsLostForAll) {
  View view(0);
  view.proposals[2].without = set_of({3});
  expect_chooses(view, {0, 1, 2});
  view.reached = set_of({0, 1, 2});  // nobody waits for it either
  expect_chooses(view, {0, 1, 2});

  View lost(3);
  lost.proposals[2].without = set_of({3});
  const Judgement found = judge(lost, come_to(lost));
  EXPECT_EQ(found.verdict, Judgement::Verdict::waits);
  EXPECT_EQ(found.yields_to, 2);
}

TEST(SurvivorsJudge, ListsOfOtherCallsLeaveNobodyOut) {
  View view(0);
  view.proposals[2].without = set_of({3});
  view.proposals[2].digest = 1;
  const Judgement found = judge(view, come_to(view));
  EXPECT_EQ(found.verdict, Judgement::Verdict::fails);
  EXPECT_EQ(found.failure.status, static_cast<std::int32_t>(Status::mismatch));
}

}  // namespace
}  // namespace torii
