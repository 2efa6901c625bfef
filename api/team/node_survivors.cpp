// SPDX-License-Identifier: Apache-2.0
// Comes to rounds, judges them, and leaves them.
#include "api/team/node_survivors.hpp"

namespace torii {

using Kind = NodeSurvivors::Outcome::Kind;

/// The round in which this member is.
class NodeSurvivors::View final : public RoundView {
 public:
  View(const Host& host, const NodeRounds& rounds, std::uint64_t round) : host_(host), rounds_(rounds), round_(round) {}
  int rank() const override { return host_.rank(); }
  int ranks() const override { return host_.ranks(); }
  bool has_come(int member) const override { return rounds_.has_offered(member, round_); }
  const RoundOffer& offer(int member) const override { return rounds_.offer_of(member, round_); }
  bool lives(int member) const override { return host_.lives(member); }
  bool may_live(int member) const override { return host_.lives(member); }
  bool may_be_divided() const override { return false; }  // one word decides
  std::string text(const std::vector<int>& members) const override { return host_.text(members); }

 private:
  const Host& host_;
  const NodeRounds& rounds_;
  std::uint64_t round_;
};

/// Joins the open round, or opens one. Kind::chosen: it has joined.
Kind NodeSurvivors::enter() noexcept {
  host_.begin_wait();
  for (;;) {
    const NodeRounds::State newest = rounds_.newest();
    switch (newest.kind) {
      case NodeRounds::Kind::open:
        if (!rounds_.join(newest.round)) break;
        round_ = newest.round;
        return Kind::chosen;
      case NodeRounds::Kind::chosen:
      case NodeRounds::Kind::made:
        return Kind::left_out;
      case NodeRounds::Kind::none:
      case NodeRounds::Kind::failed:
        if (rounds_.open_after(newest, [this](int member) { return host_.lives(member); })) break;
        (void)host_.pause();
        if (host_.is_over()) return Kind::full;
    }
  }
}

/// What a round that is not open any more is for this member.
NodeSurvivors::Outcome NodeSurvivors::take(const NodeRounds::State& closed) noexcept {
  Outcome outcome = {Kind::left_out};
  if (closed.kind == NodeRounds::Kind::failed) {
    outcome.failure = rounds_.failure(closed);
    outcome.kind = outcome.failure.absent.has(host_.rank()) ? Kind::late : Kind::failed;
  } else if (rounds_.chosen(closed).has(host_.rank())) {
    outcome.members = rounds_.chosen(closed);
    outcome.kind = closed.kind == NodeRounds::Kind::made ? Kind::made : Kind::chosen;
  }
  if (outcome.kind != Kind::chosen) rounds_.leave();
  return outcome;
}

NodeSurvivors::Outcome NodeSurvivors::come(const RoundOffer& own) noexcept {
  if (const Kind entered = enter(); entered != Kind::chosen) return {entered};
  rounds_.offer(round_, own);
  const View view(host_, rounds_, round_);
  host_.begin_wait();
  for (bool looks = false;; looks = host_.pause()) {
    NodeRounds::State state = rounds_.state_of(round_);
    if (state.kind != NodeRounds::Kind::open) return take(state);
    const MemberSet come = come_to(view);
    int awaited = 0;
    while (awaited < host_.ranks() && (own.without.has(awaited) || come.has(awaited))) ++awaited;
    if (!looks && awaited < host_.ranks()) continue;
    const Judgement found = judge(view, come);
    if (found.verdict == Judgement::Verdict::chooses) rounds_.choose(state, found.members);
    if (found.verdict == Judgement::Verdict::fails) rounds_.fail(state, found.failure);
    if (found.verdict == Judgement::Verdict::waits) {
      if (!host_.is_over()) continue;
      rounds_.fail(state, judge_late(view, come, found.members, host_.timeout_ns()));
    }
    return take(rounds_.state_of(round_));
  }
}

NodeSurvivors::Outcome NodeSurvivors::choose(const RoundOffer& own) noexcept {
  for (;;) {
    const Outcome outcome = come(own);
    if (outcome.kind != Kind::late) return outcome;
  }
}

NodeSurvivors::Outcome NodeSurvivors::settle(const MemberSet& members, const RoundFailure* refusal) noexcept {
  if (refusal == nullptr) rounds_.tell_made(round_);
  const View view(host_, rounds_, round_);
  host_.begin_wait();
  for (bool looks = true;; looks = host_.pause()) {
    const NodeRounds::State state = rounds_.state_of(round_);
    if (state.kind != NodeRounds::Kind::chosen) return take(state);
    MemberSet absent = {};
    for (int member = 0; member < host_.ranks(); ++member) {
      // A dead member makes none: the first call of the new team says so.
      const bool is_awaited = members.has(member) && !rounds_.has_made(member, round_);
      if (is_awaited && (!looks || member == host_.rank() || host_.lives(member))) absent.add(member);
    }
    if (refusal != nullptr) {
      rounds_.fail(state, *refusal);
    } else if (absent.empty()) {
      rounds_.finish(state);
    } else if (host_.is_over()) {
      rounds_.fail(state, late_object(view, absent, host_.timeout_ns()));
    } else {
      continue;
    }
    return take(rounds_.state_of(round_));
  }
}

}  // namespace torii
