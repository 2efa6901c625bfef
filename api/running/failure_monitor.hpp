// SPDX-License-Identifier: Apache-2.0
// Finds what ends a call before its time: a dead member, a deadline, calls or plans that differ, a refused call.
#pragma once

#include <cstdint>
#include <string>

#include "api/agreement/membership.hpp"
#include "api/agreement/team_agreement.hpp"
#include "api/installation/plan_cache.hpp"
#include "api/running/channels.hpp"
#include "api/running/own_calls.hpp"
#include "runtime/fabric/waiting.hpp"

namespace torii {

/// Claims the team's failure for what it finds, with a text that names the members. Ends no operation itself. For the
/// team's caller, but for abort(), which any thread may call.
class FailureMonitor {
 public:
  /// The arguments must outlive the monitor.
  FailureMonitor(const Membership& members, TeamAgreement& agreement, OwnCalls& calls, const Channels& channels,
                 PlanCache& plans) noexcept;

  /// Slow checks, about once a millisecond of waiting. True when the team has failed.
  bool finds_failure(const Waiting& waiting, Request& request) noexcept;
  /// The same while a call is being started and waits for a member: no request represents the call yet.
  bool finds_failure_in_start(const Waiting& waiting, int member, const std::string& purpose);
  /// The executor could not put or read.
  void claim_transport(const Execution& execution, const Request& request) noexcept;
  void abort(const std::string& reason) noexcept;
  /// The request's place and the rank for which it waits: "in 'up tree 0', segment 7, waiting for rank 3 on host a".
  /// May throw.
  std::string phase_text(const Request& request) const;

 private:
  bool claim(Status status, int member, const std::string& text, const MemberSet& absent = {}) noexcept;
  bool finds_dead_member(const Waiting& waiting, const Request& request, std::int64_t now);
  bool finds_refused_call(std::uint64_t own_sequence);
  bool claim_refused(int member, const RefusedCall& refused);
  bool finds_other_call(const Request& request);
  bool finds_other_length();
  std::string fault_text(const LengthFault& fault) const;
  bool differs(int member, const Request& request, std::uint64_t sequence);
  bool finds_departed_member(const Waiting& waiting, Request& request, std::int64_t now);
  bool finds_awaited_member_gone(const Waiting& waiting, Request& request, std::int64_t now);
  int departed_member_awaited_by(const Request& request) noexcept;
  bool finds_other_plan(const Waiting& waiting, const Request& request);
  bool waits_long(const Waiting& waiting, const Request& request) const noexcept;
  std::int64_t calls_are_told_ns(const Request& request) const noexcept;
  bool claim_departed(int member, const std::string& call);
  bool claim_timeout(const Waiting& waiting, const Request& request);
  bool claim_timeout_of_pair(const Request& request);
  std::string waiting_text(const PairCall& call) const;
  bool has_left_after(int member, const Request& request) noexcept;
  std::string refusals_text(int member);

  const Membership& members_;
  TeamAgreement& agreement_;
  FailureSign failed_;
  OwnCalls& calls_;
  const Channels& channels_;
  PlanCache& plans_;
  std::int64_t alive_checked_ns_ = 0;
};

}  // namespace torii
