// SPDX-License-Identifier: Apache-2.0
// The agreement of members of one node: words in TeamControl, which every member maps.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "api/agreement/node_vote.hpp"
#include "api/agreement/team_agreement.hpp"

namespace torii {

class NodeFailureRecords final : public FailureRecords {
 public:
  explicit NodeFailureRecords(FailureRecord& record) noexcept : record_(record) {}
  FailureSign failure_sign() const noexcept override { return FailureSign(record_.state); }
  void claim(Status status, int member, std::string_view text, const MemberSet& absent) noexcept override;
  void push_out() noexcept override {}
  Cause read_cause() noexcept override;

 private:
  FailureRecord& record_;
};

class NodeCallBoard final : public CallBoard {
 public:
  explicit NodeCallBoard(const Membership& members) noexcept : members_(members) {}
  std::optional<CallSnapshot> snapshot_of(int member, std::uint64_t sequence) noexcept override;
  bool has_come_to(int member, std::uint64_t sequence) noexcept override;
  std::uint64_t completed_by(int member) noexcept override;
  std::uint64_t settled_by(int member) noexcept override;
  std::int64_t last_attentive_ns(int member) noexcept override;
  std::span<const RefusalNotice> refusals_of(int member) noexcept override;
  bool has_departed(int member) noexcept override;
  std::optional<std::uint64_t> departed_after(int member) noexcept override;
  void publish(const CallSnapshot&, std::int64_t, std::int64_t) noexcept override {}
  void tell_end(const CallSnapshot&) noexcept override {}
  void put_refusal(const RefusalNotice& notice) noexcept override;
  void leave() noexcept override;

 private:
  const Membership& members_;
};

class NodeAgreement final : public TeamAgreement {
 public:
  explicit NodeAgreement(const Membership& members);
  FailureRecords& failures() noexcept override { return failures_; }
  CallBoard& calls() noexcept override { return calls_; }
  SurvivorVote& vote() noexcept override { return vote_; }
  void depart(const TouchedMemory& touched) noexcept override;
  std::vector<PutOwner> take_puts() override { return {}; }

 private:
  const Membership& members_;
  NodeFailureRecords failures_;
  NodeCallBoard calls_;
  NodeVote vote_;
};

}  // namespace torii
