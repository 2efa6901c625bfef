// SPDX-License-Identifier: Apache-2.0
// The agreement of members of one node: words in TeamControl, which every member maps.
#pragma once

#include "api/agreement/node_survivors.hpp"
#include "api/agreement/patience.hpp"
#include "api/agreement/team_agreement.hpp"

namespace torii {

class NodeAgreement final : public TeamAgreement {
 public:
  explicit NodeAgreement(const Membership& members);

  void progress() noexcept override {}
  void push_out() noexcept override {}
  FailureSign failure_sign() const noexcept override;
  void claim(Status status, int member, const std::string& text, const MemberSet& absent) noexcept override;
  Cause read_cause() noexcept override;
  std::optional<CallSnapshot> snapshot_of(int member, std::uint64_t sequence) noexcept override;
  bool has_come_to(int member, std::uint64_t sequence) noexcept override;
  std::uint64_t completed_by(int member) noexcept override;
  std::int64_t last_attentive_ns(int member) noexcept override;
  void publish(const CallSnapshot&, std::int64_t, std::int64_t) noexcept override {}
  void tell_end(const CallSnapshot&) noexcept override {}
  void put_refusal(const RefusalNotice& notice) noexcept override;
  std::span<const RefusalNotice> refusals_of(int member) noexcept override;
  void put_install(std::uint64_t number, std::uint64_t word) noexcept override;
  std::uint64_t install_word(int member, std::uint64_t number) noexcept override;
  bool control_puts_done() const noexcept override { return true; }
  void put_epoch(std::uint64_t epoch) noexcept override;
  bool has_reached(int member, std::uint64_t epoch) noexcept override;
  void leave() noexcept override;
  bool has_departed(int member) noexcept override;
  std::optional<std::uint64_t> departed_after(int member) noexcept override;
  void depart(std::uint64_t touched_bytes) noexcept override;
  std::vector<PutOwner> take_puts() override { return {}; }
  std::optional<bool> decide_split(bool agreed) noexcept override;
  bool learns_failure() noexcept override { return failure_sign().is_set(); }
  void choose_survivors(const SurvivorProposal& own, std::vector<Survivor>& chosen) override;
  bool settle_survivors(const Trouble& trouble, const std::vector<Survivor>& chosen) override;

 private:
  /// Answers the questions of NodeSurvivors.
  class Host final : public NodeSurvivors::Host {
   public:
    explicit Host(const Membership& members) : members_(members) {}
    int rank() const override { return members_.rank(); }
    int ranks() const override { return members_.ranks(); }
    bool lives(int member) const override { return members_.lives(member); }
    std::string text(const std::vector<int>& members) const override { return members_.text(members); }
    std::int64_t timeout_ns() const override { return members_.timeout_ns(); }
    void begin_wait() override { waiting_.emplace(members_.waiting()); }
    bool pause() override { return waiting_->pause(stays_idle, nullptr); }
    bool is_over(bool others_first) const override {
      const std::int64_t most_ns = members_.timeout_ns();
      return waiting_->is_over() && waiting_->quiet_ns() > most_ns + (others_first ? pass_on_ns(most_ns) : 0);
    }

   private:
    const Membership& members_;
    std::optional<Waiting> waiting_;
  };
  void throw_failed(const NodeSurvivors::Outcome& outcome) const;

  const Membership& members_;
  TeamControl& own_;
  TeamControl& first_;        ///< holds the records of failure and splits, and the words of rounds
  std::uint32_t splits_ = 0;  ///< that all members agreed on
  Host host_;
  NodeSurvivors survivors_;
};

}  // namespace torii
