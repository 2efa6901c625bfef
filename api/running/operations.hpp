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
#include "api/running/channels.hpp"
#include "api/running/failure_monitor.hpp"
#include "api/running/in_flight.hpp"
#include "api/running/own_calls.hpp"
#include "api/running/team_health.hpp"
#include "api/running/waits.hpp"

namespace torii {

/// For the team's caller, or callers, but for the functions of AttachedTeam, abort() and moves(). Those that return a
/// status return invalid_argument, and do nothing, where Waits::enter() refuses.
class Operations final : public AttachedTeam {
 public:
  /// The arguments must outlive the operations.
  /// `many_callers`: all functions may be called by several threads at once.
  /// `pairs`: where sends and receives have their messages.
  Operations(const Membership& members, TeamAgreement& agreement, PlanCache& plans, PairsPlace pairs,
             const TeamRings& rings, bool many_callers);
  /// Nobody moves operations afterwards.
  void close() noexcept;

  /// For callers that start nothing: reads the request's lengths, checks the call and makes a call plan of the caller's
  /// own. nullptr with last_error() set, and the status.
  std::unique_ptr<const CallPlan> prepare(Request& request, Status& status) noexcept;
  /// Whether the call can be made; otherwise last_error() and the status are set.
  bool may_make(Request& request, Status& status) noexcept;
  /// Starts or queues, and lets other threads move the operation. The request must stay where it is until it is done.
  Status submit(Request& request) noexcept;
  /// A channel of its own for a persistent operation; collective.
  Status open_channel(Request& request) noexcept;
  /// Gives the channel to the next persistent operation. Collective in the sense of order only: nobody waits.
  Status close_channel(const Request& request) noexcept;
  /// Makes a call and waits for its end.
  Status run(const CallDescription& call) noexcept;
  /// The same for a request: a send or a receive, or a call whose lengths have been read.
  Status run(Request& request) noexcept;
  /// A send that has room and a receive whose message comes within so many polls end here: they need no request. Others
  /// have to be started, if the status is ok.
  Status run_at_once(PairCall& call, int polls, bool& has_ended) noexcept;
  /// Takes a receive back. Not cancelled if it has met its send: it will be done.
  Status cancel(Request& request, bool& is_cancelled) noexcept;

  /// Ends what is in flight. All members are told, unless nothing was but receives that have met no send.
  Status cancel_all() noexcept;
  /// For a request that has been started: calls `done` once when it ends, or now if it has.
  Status call_when_done(Request& request, torii_done_function done, void* data) noexcept;
  Waits& waits() noexcept { return waits_; }

  /// A call was refused, for this reason, before it came to submit(), run() or open_channel(), which count what they
  /// refuse themselves. It counts as this rank's call: the team fails if other ranks made that call.
  void count_refusal(const char* reason) noexcept;
  /// How many calls this rank has made or refused; persistent operations count when they are prepared.
  std::uint64_t calls() const noexcept { return calls_.sequence(); }
  void abort(const std::string& reason) noexcept { monitor_.abort(reason); }
  /// Whether the team works. The cause of a failure is there once a call of this rank has reported it.
  const TeamHealth& health() const noexcept { return in_flight_.health(); }
  void tell_absent(const MemberSet& members) noexcept { in_flight_.tell_absent(members); }
  /// A call of this rank cannot go on: the team fails. Returns the cause that all members report; last_error() has its
  /// text.
  Status give_up(Status status, const std::string& reason) noexcept;
  /// Ends all requests with the failure of the team. The first call to learn of it reports the cause, later ones
  /// `poisoned`.
  Status adopt_failure() noexcept;

  std::uint64_t engine_bytes(int engine) const noexcept override { return channels_.engine_bytes(engine); }
  bool progress_in_background() noexcept override { return waits_.progress_in_background(); }
  bool lose(int context_rank, const std::shared_ptr<const void>& writer) noexcept override;
  void push_out() noexcept override { failures_.push_out(); }
  /// The writers that lose() has given, after close().
  std::vector<std::shared_ptr<const void>> take_writers() noexcept { return std::move(writers_); }
  Channels& channels() noexcept { return channels_; }
  TeamPairs& pairs() noexcept { return pairs_; }
  /// Grows whenever an operation of this team moves, whoever moves it. From any thread.
  std::uint64_t moves() const noexcept { return in_flight_.moves(); }

 private:
  CallPlan* prepare_inside(Request& request, Status& status) noexcept;
  /// The call plan of a call that is like one before it; nullptr: PlanCache::find() may make one.
  [[gnu::always_inline]] CallPlan* find_plan(const CallSpec& spec) noexcept {
    if (last_call_plan_ != nullptr && last_call_plan_->spec == spec) [[likely]] {
      return last_call_plan_;
    }
    CallPlan* const recalled = plans_.recall(spec);
    if (recalled != nullptr) last_call_plan_ = recalled;
    return recalled;
  }

  // operations_run.cpp
  Status run_inside(const CallDescription& call) noexcept;
  Status run_held(const CallDescription& call) noexcept;
  Status run_flows(const CallDescription& call, CallPlan& call_plan) noexcept;
  Status run_as_request(const CallDescription& call) noexcept;
  Status go_on(const CallDescription& call, const PlacedCall& placed, std::unique_ptr<UnequalBlocks>* blocks) noexcept;

  // operations_start.cpp: from a request to an operation that runs.
  Status start(Request& request) noexcept;
  Status make_ready(Request& request) noexcept;
  void note_refusal(std::uint64_t sequence, const char* reason) noexcept;

  bool has_failed() const noexcept { return in_flight_.is_poisoned() || failed_.is_set(); }

  Context& context_;
  const Membership& members_;
  FailureRecords& failures_;
  CallBoard& board_;
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
  std::unique_ptr<UnequalBlocks> blocks_;             ///< memory for unequal blocks; nullptr before the first call
  std::vector<std::shared_ptr<const void>> writers_;  ///< as of lose()
};

}  // namespace torii
