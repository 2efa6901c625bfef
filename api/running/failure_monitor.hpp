// SPDX-License-Identifier: Apache-2.0
// Finds what ends a call before its time: a dead member, a deadline, calls that differ, a refused call.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/agreement/call_board.hpp"
#include "api/agreement/failure_records.hpp"
#include "api/agreement/membership.hpp"
#include "api/installation/plan_cache.hpp"
#include "api/running/channels.hpp"
#include "api/running/findings.hpp"
#include "api/running/own_calls.hpp"
#include "runtime/fabric/waiting.hpp"

namespace torii {

/// Looks at the members that this rank watches, asks the functions of findings.hpp, and claims the team's failure for
/// what they find. Ends no operation itself. For the team's caller, but for claim() and abort(), which any thread may
/// call.
class FailureMonitor {
 public:
  /// The arguments must outlive the monitor.
  FailureMonitor(const Membership& members, FailureRecords& failures, CallBoard& board, OwnCalls& calls,
                 const Channels& channels, PlanCache& plans);

  /// Slow checks, about once a millisecond of waiting. True when the team has failed.
  bool finds_failure(const Waiting& waiting, Request& request) noexcept;
  /// The executor could not put or read.
  void claim_transport(const Execution& execution, const Request& request) noexcept;
  void abort(const std::string& reason) noexcept;
  /// The team fails, unless it has failed before. Every failure of a team that runs calls is claimed here.
  void claim(Status status, int member, std::string_view text, const MemberSet& absent = {}) noexcept;
  /// The request's place and the rank for which it waits: "in 'up tree 0', segment 7, waiting for rank 3 on host a".
  /// May throw.
  std::string phase_text(const Request& request) const;

 private:
  bool claims(const std::optional<Finding>& found) noexcept;
  std::optional<Finding> find(const Waiting& waiting, Request& request, std::int64_t now);
  std::optional<Finding> find_other_length(const OwnView& waiting_own);
  std::optional<Finding> find_departed(OwnView& own, Request& request);
  Finding transport_finding(const Execution& execution, const Request& request) const;
  std::string fault_text(const LengthFault& fault) const;
  std::string waiting_text(const PairCall& call) const;

  OwnView own_view(const Waiting& waiting, const Request& request, std::int64_t now) const;
  void set_request(OwnView& own, const Request& request) const;

  // They fill parts of watched_.
  void look_for_refusals() noexcept;
  void look_at_calls(const Request& request) noexcept;
  bool looks_who_lives(const Request& request, std::int64_t now);
  void look_who_is_silent(const Request& request) noexcept;
  void look_who_is_awaited(const Request& request) noexcept;
  bool has_ended(int member, const Request& request) noexcept;

  const Membership& members_;
  FailureRecords& failures_;
  CallBoard& board_;
  FailureSign failed_;
  OwnCalls& calls_;
  const Channels& channels_;
  PlanCache& plans_;
  std::vector<MemberView> watched_;  ///< ascending; all members but this rank
  std::array<CallSnapshot, kCallRecords> own_records_;
  std::int64_t alive_checked_ns_ = 0;
};

}  // namespace torii
