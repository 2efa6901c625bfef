// SPDX-License-Identifier: Apache-2.0
// The calls of a team: from what the caller asks for to an operation in flight, or to its end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/agreement/membership.hpp"
#include "api/agreement/team_agreement.hpp"
#include "api/calls/arena_copies.hpp"
#include "api/calls/last_error.hpp"
#include "api/calls/request.hpp"
#include "api/context/context.hpp"
#include "api/installation/plan_cache.hpp"
#include "api/running/block_calls.hpp"
#include "api/running/channels.hpp"
#include "api/running/failure_monitor.hpp"
#include "api/running/in_flight.hpp"
#include "api/running/own_calls.hpp"
#include "api/running/team_health.hpp"
#include "api/running/waits.hpp"

namespace torii {

/// For the team's caller, or callers, but for the functions of AttachedTeam and abort(). Functions of Team have the
/// same names. Those that return a status return invalid_argument, and do nothing, where Waits::enter() refuses.
class Operations final : public AttachedTeam {
 public:
  /// The arguments must outlive the operations.
  /// `many_callers`: all functions may be called by several threads at once.
  /// `pairs`: where sends and receives have their messages.
  Operations(const Membership& members, TeamAgreement& agreement, PlanCache& plans, PairsPlace pairs,
             std::size_t shared_channels, bool many_callers);
  /// Nobody moves operations afterwards.
  void close() noexcept;

  /// For callers that start nothing: a call plan of their own.
  std::unique_ptr<const CallPlan> prepare(Request& request, Status& status) noexcept;
  bool may_make(Request& request, Status& status) noexcept;
  Status submit(Request& request) noexcept;
  Status open_channel(Request& request) noexcept;
  Status close_channel(const Request& request) noexcept;
  Status run(Request& request) noexcept;
  bool run_cached(const CallKey& call, Status& status) noexcept;
  BlockCalls& block_calls() noexcept { return block_calls_; }
  /// For a receive: not cancelled if it has met its send, and will be done.
  Status cancel(Request& request, bool& is_cancelled) noexcept;

  /// Ends what is in flight. All members are told, unless nothing was but receives that have met no send.
  Status cancel_all() noexcept;
  Status call_when_done(Request& request, torii_done_function done, void* data) noexcept;
  Waits& waits() noexcept { return waits_; }

  void count_refusal(const char* reason) noexcept;
  /// How many calls this rank has made or refused; persistent operations count when they are prepared.
  std::uint64_t calls() const noexcept { return calls_.sequence(); }
  void abort(const std::string& reason) noexcept { monitor_.abort(reason); }
  /// Its cause is told when a call of this rank reports it.
  const TeamHealth& health() const noexcept { return in_flight_.health(); }
  void tell_absent(const MemberSet& members) noexcept { in_flight_.tell_absent(members); }
  /// A call cannot go on for a reason of this rank: the team fails. Returns what adopt_failure() does.
  Status give_up(Status status, const std::string& reason) noexcept;
  /// Ends all requests with the failure of the team. The first call to learn of it reports the cause, later ones
  /// `poisoned`.
  Status adopt_failure() noexcept;

  std::uint64_t engine_bytes(int engine) const noexcept override { return channels_.engine_bytes(engine); }
  bool progress_in_background() noexcept override { return waits_.progress_in_background(); }
  bool lose(int context_rank, const std::shared_ptr<const void>& writer) noexcept override;
  void push_out() noexcept override { agreement_.push_out(); }
  /// The writers that lose() has given, after close().
  std::vector<std::shared_ptr<const void>> take_writers() noexcept { return std::move(writers_); }
  Channels& channels() noexcept { return channels_; }
  TeamPairs& pairs() noexcept { return pairs_; }
  /// InFlight::moves().
  std::uint64_t moves() const noexcept { return in_flight_.moves(); }

 private:
  CallPlan* prepare_inside(Request& request, Status& status) noexcept;
  // operations_start.cpp: from a call to an operation that runs.
  Status start(Request& request) noexcept;
  bool fold_leaves_of(Request& request, Status& status) noexcept;
  Status start_pair(Request& request) noexcept;
  Status take_channel(Request& request) noexcept;
  void take_place(Request& request) noexcept;
  Status make_ready(Request& request) noexcept;
  void note_refusal(std::uint64_t sequence, const char* reason) noexcept;

  bool has_failed() const noexcept { return in_flight_.is_poisoned() || failed_.is_set(); }

  // operations_cached.cpp
  bool repeat(const CallKey& call, Status& status) noexcept;
  bool repeat_held(const CallKey& call, Status& status) noexcept;

  Context& context_;
  const Membership& members_;
  TeamAgreement& agreement_;
  PlanCache& plans_;
  FailureSign failed_;
  Channels channels_;
  TeamPairs pairs_;
  OwnCalls calls_;
  FailureMonitor monitor_;
  ArenaCopies copies_;
  InFlight in_flight_;
  CallPlan* last_call_plan_ = nullptr;
  Waits waits_;
  BlockCalls block_calls_;
  std::vector<std::shared_ptr<const void>> writers_;  ///< as of lose()
};

}  // namespace torii
