// SPDX-License-Identifier: Apache-2.0
// The agreement of members of several nodes: messages that the members put into each other's memory. Mates read each
// other's call records in shared memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "api/agreement/agreement_messages.hpp"
#include "api/agreement/network_vote.hpp"
#include "api/agreement/node_agreement.hpp"
#include "api/agreement/team_agreement.hpp"

namespace torii {

class NetworkCallBoard final : public CallBoard {
 public:
  /// The arguments must outlive the board.
  NetworkCallBoard(const Membership& members, AgreementMessages& messages) noexcept
      : members_(members), mates_(members), messages_(messages) {}
  std::optional<CallSnapshot> snapshot_of(int member, std::uint64_t sequence) noexcept override;
  bool has_come_to(int member, std::uint64_t sequence) noexcept override;
  std::uint64_t completed_by(int member) noexcept override;
  std::uint64_t settled_by(int member) noexcept override;
  std::int64_t last_attentive_ns(int member) noexcept override;
  std::span<const RefusalNotice> refusals_of(int member) noexcept override;
  bool has_departed(int member) noexcept override;
  std::optional<std::uint64_t> departed_after(int member) noexcept override;
  void publish(const CallSnapshot& own, std::int64_t now_ns, std::int64_t quiet_since_ns) noexcept override;
  void tell_end(const CallSnapshot& own) noexcept override;
  void put_refusal(const RefusalNotice& notice) noexcept override;
  void leave() noexcept override;

 private:
  const Membership& members_;
  NodeCallBoard mates_;  ///< for members of this rank's node
  AgreementMessages& messages_;
};

class NetworkAgreement final : public TeamAgreement {
 public:
  explicit NetworkAgreement(const Membership& members);
  FailureRecords& failures() noexcept override { return messages_; }
  CallBoard& calls() noexcept override { return calls_; }
  SurvivorVote& vote() noexcept override { return vote_; }
  void depart(const TouchedMemory& touched) noexcept override;
  std::vector<PutOwner> take_puts() override;

 private:
  const Membership& members_;
  ControlWriter box_;
  AgreementMessages messages_;
  NetworkCallBoard calls_;
  NetworkVote vote_;
};

}  // namespace torii
