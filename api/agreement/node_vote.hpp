// SPDX-License-Identifier: Apache-2.0
// The decisions about new teams on one node: words in TeamControl, which every member maps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/agreement/membership.hpp"
#include "api/agreement/node_survivors.hpp"
#include "api/agreement/patience.hpp"
#include "api/agreement/survivor_vote.hpp"

namespace torii {

class NodeVote final : public SurvivorVote {
 public:
  explicit NodeVote(const Membership& members);

  std::optional<bool> decide_split(bool agreed) noexcept override;
  bool learns_failure() noexcept override;
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
    /// This rank does not sleep any more.
    void end_wait() noexcept { waiting_.reset(); }

   private:
    const Membership& members_;
    std::optional<Waiting> waiting_;
  };
  void throw_failed(const NodeSurvivors::Outcome& outcome) const;

  const Membership& members_;
  TeamControl& first_;        ///< holds the record of splits, and the words of rounds
  std::uint32_t splits_ = 0;  ///< that all members agreed on
  Host host_;
  NodeSurvivors survivors_;
};

}  // namespace torii
