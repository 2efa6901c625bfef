// SPDX-License-Identifier: Apache-2.0
// Words of TeamControl about splits, and rounds of survivors.
#include "api/agreement/node_vote.hpp"

#include <atomic>

#include "api/agreement/failure_records.hpp"

namespace torii {

NodeVote::NodeVote(const Membership& members)
    : members_(members),
      first_(members.control(0)),
      host_(members),
      survivors_(host_,
                 NodeRounds([&members](int member) -> SurvivorsRecord& { return members.control(member).survivors; },
                            members.rank(), members.ranks())) {}

bool NodeVote::learns_failure() noexcept { return FailureSign(first_.failure.state).is_set(); }

/// A member may leave a split and abort the team while another member waits for the last messages of the split. The
/// first of the two decides by one word whether the parts are made.
std::optional<bool> NodeVote::decide_split(bool agreed) noexcept {
  // Release and acquire: a rank that finds the split failed finds the failure, too.
  std::uint32_t found = 2 * splits_;
  const std::uint32_t decided = agreed ? found + 2 : found + 1;
  if (first_.splits.compare_exchange_strong(found, decided, std::memory_order_acq_rel, std::memory_order_acquire)) {
    found = decided;
  }
  // Others may have made later splits, or failed in them, but only after this one was made.
  if (found / 2 <= splits_) return false;
  ++splits_;
  return true;
}

void NodeVote::throw_failed(const NodeSurvivors::Outcome& outcome) const {
  if (outcome.kind == NodeSurvivors::Outcome::Kind::failed) throw RoundError(outcome.failure);
  throw_left_out(members_.rank());
}

void NodeVote::choose_survivors(const SurvivorProposal& own, std::vector<Survivor>& chosen) {
  const NodeSurvivors::Outcome outcome = survivors_.choose(own);
  host_.end_wait();
  if (outcome.kind != NodeSurvivors::Outcome::Kind::chosen) throw_failed(outcome);
  for (int member = 0; member < members_.ranks(); ++member) {
    if (outcome.members.has(member)) chosen.push_back({member, survivors_.proposal_of(member).memory_offset});
  }
}

bool NodeVote::settle_survivors(const Trouble& trouble, const std::vector<Survivor>& chosen) {
  MemberSet members = {};
  for (const Survivor& one : chosen) members.add(one.member);
  const RoundFailure refusal = refusal_of(members_.rank(), trouble.status, trouble.text);
  const NodeSurvivors::Outcome outcome = survivors_.settle(members, trouble.is_there() ? &refusal : nullptr);
  host_.end_wait();
  if (outcome.kind == NodeSurvivors::Outcome::Kind::late) return false;
  if (outcome.kind != NodeSurvivors::Outcome::Kind::made) throw_failed(outcome);
  return true;
}

}  // namespace torii
