// SPDX-License-Identifier: Apache-2.0
// Comes to rounds, judges them, and leaves them.
#include "api/agreement/node_survivors.hpp"

namespace torii {

using Kind = NodeSurvivors::Outcome::Kind;

/// The round in which this member is.
class NodeSurvivors::View final : public RoundView {
 public:
  View(const Host& host, const NodeRounds& rounds, std::uint64_t round) : host_(host), rounds_(rounds), round_(round) {}
  int rank() const override { return host_.rank(); }
  int ranks() const override { return host_.ranks(); }
  bool has_come(int member) const override { return rounds_.has_proposed(member, round_); }
  SurvivorProposal proposal(int member) const override { return rounds_.proposal_of(member, round_); }
  bool lives(int member) const override { return host_.lives(member); }
  bool may_live(int member) const override { return host_.lives(member); }
  bool may_be_divided() const override { return false; }  // one word decides
  std::string text(const std::vector<int>& members) const override { return host_.text(members); }

 private:
  const Host& host_;
  const NodeRounds& rounds_;
  std::uint64_t round_;
};

/// Finds the open round, or opens one. False where others have a team, or make one.
bool NodeSurvivors::enter() noexcept {
  for (;;) {
    const NodeRounds::State newest = rounds_.newest();
    switch (newest.kind) {
      case NodeRounds::Kind::open:
        round_ = newest.round;
        return true;
      case NodeRounds::Kind::chosen:
      case NodeRounds::Kind::made:
        return false;
      case NodeRounds::Kind::none:
      case NodeRounds::Kind::failed:
        rounds_.open_after(newest);
    }
  }
}

/// The outcome of the round for this member, now that the round is not open any more. A round that has gone has failed:
/// the newest round tells how the member goes on.
NodeSurvivors::Outcome NodeSurvivors::take() const noexcept {
  for (;;) {
    const NodeRounds::State closed = rounds_.state_of(round_);
    if (closed.kind == NodeRounds::Kind::none) return {Kind::late};
    if (closed.kind == NodeRounds::Kind::failed) {
      const std::optional<RoundFailure> failure = rounds_.failure(closed);
      if (failure) return {failure->absent.has(host_.rank()) ? Kind::late : Kind::failed, {}, *failure};
    } else if (const std::optional<MemberSet> members = rounds_.chosen(closed)) {
      if (!members->has(host_.rank())) return {Kind::left_out};
      return {closed.kind == NodeRounds::Kind::made ? Kind::made : Kind::chosen, *members};
    }
  }
}

NodeSurvivors::Outcome NodeSurvivors::come(const SurvivorProposal& own) noexcept {
  if (!enter()) return {Kind::left_out};
  rounds_.proposal(round_, own);
  const View view(host_, rounds_, round_);
  host_.begin_wait();
  int yields_to = -1;
  for (bool looks = false;; looks = host_.pause()) {
    const NodeRounds::State state = rounds_.state_of(round_);
    if (state.kind != NodeRounds::Kind::open) return take();
    const MemberSet come = come_to(view);
    int awaited = 0;
    while (awaited < host_.ranks() && (own.without.has(awaited) || come.has(awaited))) ++awaited;
    if (!looks && awaited < host_.ranks()) continue;
    const Judgement found = judge(view, come);
    if (found.verdict == Judgement::Verdict::chooses) rounds_.choose(state, found.members);
    if (found.verdict == Judgement::Verdict::fails) rounds_.fail(state, found.failure);
    if (found.verdict == Judgement::Verdict::waits) {
      // A member that is left out must not end the others' round before they do: its deadline begins anew when theirs
      // has.
      if (found.yields_to != yields_to) host_.begin_wait();
      yields_to = found.yields_to;
      if (!host_.is_over(yields_to >= 0)) continue;
      rounds_.fail(state, judge_late(view, come, found, host_.timeout_ns()));
    }
    return take();
  }
}

NodeSurvivors::Outcome NodeSurvivors::choose(const SurvivorProposal& own) noexcept {
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
    if (state.kind != NodeRounds::Kind::chosen) return take();
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
    } else if (host_.is_over(false)) {
      rounds_.fail(state, late_object(view, absent, host_.timeout_ns()));
    } else {
      continue;
    }
    return take();
  }
}

}  // namespace torii
