// SPDX-License-Identifier: Apache-2.0
// The decisions about new teams between nodes: rounds of the survivors, and the engines that they have lost.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "api/agreement/agreement_messages.hpp"
#include "api/agreement/membership.hpp"
#include "api/agreement/split_decision.hpp"
#include "api/agreement/survivor_messages.hpp"
#include "api/agreement/survivor_vote.hpp"
#include "api/agreement/survivors_judge.hpp"

namespace torii {

class NetworkVote final : public SurvivorVote {
 public:
  /// The arguments must outlive the vote.
  NetworkVote(const Membership& members, ControlWriter& box, AgreementMessages& messages) noexcept;

  std::optional<bool> decide_split(bool agreed) noexcept override;
  bool learns_failure() noexcept override;
  void choose_survivors(const SurvivorProposal& own, std::vector<Survivor>& chosen) override;
  bool settle_survivors(const Trouble& trouble, const std::vector<Survivor>& chosen) override;

 private:
  class Round;
  bool pause(Waiting& waiting) const noexcept;
  bool is_chosen_in_round(const SurvivorProposal& own, std::vector<Survivor>& chosen);
  bool await_proposals(const Round& view, Waiting& waiting);
  bool fails(const Round& view, const MemberSet& come, const Judgement& found, bool is_over) noexcept;
  std::uint64_t known_lost_engines() const noexcept;
  std::uint64_t find_missed_engines(Waiting& waiting);
  int lowest_decider(const Round& view, const Waiting& waiting) const noexcept;
  bool await_decision(const Round& view, Waiting& waiting);
  void close_engines(const ControlBlocks::Decision& decision);
  bool await_closed(const Round& view, const ControlBlocks::Decision& decision, Waiting& waiting);
  void leave(const RoundFailure& failure) noexcept;
  bool end_round();

  const Membership& members_;
  ControlWriter& box_;
  AgreementMessages& messages_;
  SurvivorMessages survivors_;
  SplitDecision splits_;
};

}  // namespace torii
