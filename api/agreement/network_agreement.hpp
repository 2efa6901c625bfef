// SPDX-License-Identifier: Apache-2.0
// The agreement of members of several nodes: messages that the members put into each other's memory. Mates read each
// other's call records in shared memory.
#pragma once

#include "api/agreement/agreement_messages.hpp"
#include "api/agreement/split_decision.hpp"
#include "api/agreement/survivor_messages.hpp"
#include "api/agreement/survivors_judge.hpp"
#include "api/agreement/team_agreement.hpp"

namespace torii {

class NetworkAgreement final : public TeamAgreement {
 public:
  explicit NetworkAgreement(const Membership& members);

  void progress() noexcept override;
  void push_out() noexcept override;
  FailureSign failure_sign() const noexcept override;
  void claim(Status status, int member, const std::string& text, const MemberSet& absent) noexcept override;
  Cause read_cause() noexcept override;
  std::optional<CallSnapshot> snapshot_of(int member, std::uint64_t sequence) noexcept override;
  bool has_come_to(int member, std::uint64_t sequence) noexcept override;
  std::uint64_t completed_by(int member) noexcept override;
  std::int64_t last_attentive_ns(int member) noexcept override;
  void publish(const CallSnapshot& own, std::int64_t now_ns, std::int64_t quiet_since_ns) noexcept override;
  void tell_end(const CallSnapshot& own) noexcept override;
  void put_refusal(const RefusalNotice& notice) noexcept override;
  std::span<const RefusalNotice> refusals_of(int member) noexcept override;
  void put_install(std::uint64_t number, std::uint64_t word) noexcept override;
  std::uint64_t install_word(int member, std::uint64_t number) noexcept override;
  bool control_puts_done() const noexcept override;
  void put_epoch(std::uint64_t epoch) noexcept override;
  bool has_reached(int member, std::uint64_t epoch) noexcept override;
  void leave() noexcept override;
  bool has_departed(int member) noexcept override;
  std::optional<std::uint64_t> departed_after(int member) noexcept override;
  void depart(std::uint64_t) noexcept override;
  std::vector<PutOwner> take_puts() override;
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
  ControlWriter box_;
  AgreementMessages messages_;
  SurvivorMessages survivors_;
  SplitDecision splits_;
};

}  // namespace torii
