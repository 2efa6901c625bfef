// SPDX-License-Identifier: Apache-2.0
// The operations of a team that have started and not ended: they begin, move and end on the team's channels.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "api/agreement/call_board.hpp"
#include "api/agreement/failure_records.hpp"
#include "api/agreement/membership.hpp"
#include "api/calls/arena_copies.hpp"
#include "api/calls/request.hpp"
#include "api/context/context.hpp"
#include "api/installation/plan_cache.hpp"
#include "api/running/channels.hpp"
#include "api/running/failure_monitor.hpp"
#include "api/running/own_calls.hpp"
#include "api/running/team_health.hpp"
#include "api/running/team_pairs.hpp"

namespace torii {

/// One thread at a time; Operations keeps the others out. Nothing here waits.
class InFlight {
 public:
  /// The arguments must outlive this.
  InFlight(const Membership& members, FailureRecords& failures, CallBoard& board, PlanCache& plans,
           const Channels& channels, TeamPairs& pairs, OwnCalls& calls, FailureMonitor& monitor,
           ArenaCopies& copies) noexcept;

  /// Collectives in flight.
  int count() const noexcept { return state_ & ~kPoisoned; }
  /// No collective is in flight, and the team has not failed.
  bool is_quiet() const noexcept { return state_ == 0; }
  /// No send and no receive either.
  bool is_idle() const noexcept { return count() == 0 && pairs_.open() == 0; }
  /// Whether this rank has sent or received.
  bool has_pairs() const noexcept { return pairs_.are_used(); }
  /// Something has moved or ended. Waits for other operations of the team then count as moving.
  void note_move() noexcept { moves_.store(moves() + 1, std::memory_order_relaxed); }
  /// An operation has started. It counts before it is on a channel, so that calls which end while its plan is installed
  /// do not count it as ended.
  void add(const Request& request) noexcept {
    ++state_;
    ++request.call_plan->users;
  }
  /// The start of that operation has failed, or it has ended.
  void take_back(const Request& request) noexcept {
    --state_;
    --request.call_plan->users;
  }
  /// The operation has ended: tells those who want to know. Nobody can take the request away before this thread has
  /// given up the team's lock.
  void end(Request& request, Status status) noexcept {
    if (request.copies.operands != nullptr) copies_.give_back(std::exchange(request.copies.operands, nullptr));
    request.state = Request::State::done;
    request.status = status;
    if (request.on_done != nullptr || (request.is_started && context_.end_event().is_watched())) tell_end(request);
  }
  /// The request is the next one on its channel, where nothing runs.
  void start_on(Channel& channel, Request& request) noexcept;

  /// True when the channel's operation moved or ended, be it with a failure.
  bool advance(Channel& channel) noexcept;
  /// Advances all channels, sends and receives; true if one moved.
  bool progress() noexcept;
  /// Sends and receives alone.
  bool progress_pairs() noexcept;
  /// Sends of others that came before the first one of this rank are taken from now on, as far as there is memory.
  void look_for_sends() noexcept;
  /// The send or receive begins, if the team has not failed. A refused one counts for nobody: it is in no order with
  /// the team's calls.
  Status start_pair(Request& request, bool has_failed) noexcept;
  /// Takes a receive back; false if it has met its send.
  bool withdraw(Request& request) noexcept;
  /// Sends and receives end with status `aborted`, on this rank alone. None may be started afterwards.
  void drop_pairs() noexcept;
  /// The number of moves, by any thread. A wait compares it to see whether operations still move. From any thread.
  std::uint64_t moves() const noexcept { return moves_.load(std::memory_order_relaxed); }

  /// The team fails, and so does every operation in flight. Returns what adopt_failure() does.
  Status fail(Status status, int member, const std::string& text) noexcept;
  /// The same because there is no memory for a copy of the request's input.
  Status fail_without_copy(const Request& request) noexcept;
  /// Ends all operations with the failure of the team, and sets last_error(). Returns its status the first time, later
  /// `poisoned`.
  Status adopt_failure() noexcept;
  bool is_poisoned() const noexcept { return (state_ & kPoisoned) != 0; }
  const TeamHealth& health() const noexcept { return health_; }
  void tell_absent(const MemberSet& members) noexcept { health_.tell_absent(members); }

 private:
  void tell_end(Request& request) noexcept;
  bool move(Channel& channel) noexcept;
  bool find_rings(Channel& channel) noexcept;
  void begin(Channel& channel, Request& request) noexcept;
  void begin_blocks(Channel& channel, Request& request) noexcept;
  void complete(Channel& channel, Status status) noexcept;
  void tell_ended() noexcept;
  void end_pairs() noexcept;
  void fail_pairs() noexcept;

  Context& context_;
  const Membership& members_;
  FailureRecords& failures_;
  CallBoard& board_;
  PlanCache& plans_;
  const Channels& channels_;
  TeamPairs& pairs_;
  OwnCalls& calls_;
  FailureMonitor& monitor_;
  ArenaCopies& copies_;
  static constexpr int kPoisoned = 1 << 30;
  int state_ = 0;  ///< how many collectives are in flight, and kPoisoned: one word for the calls that begin at once
  std::atomic<std::uint64_t> moves_ = 0;  ///< written by one thread at a time
  TeamHealth health_;
};

}  // namespace torii
