// SPDX-License-Identifier: Apache-2.0
// The calls that this rank has made or refused on a team: their number, their history, and their call records.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "api/agreement/call_records.hpp"
#include "api/agreement/refused_calls.hpp"
#include "api/agreement/team_control.hpp"
#include "api/calls/request.hpp"
#include "api/running/call_history.hpp"
#include "api/running/channels.hpp"

namespace torii {

class OwnCalls {
 public:
  /// `control` is this rank's.
  explicit OwnCalls(TeamControl& control) noexcept : control_(control) {}

  /// The number of the last call; persistent operations count when they are prepared.
  std::uint64_t sequence() const noexcept { return sequence_; }
  /// The number of a new call.
  std::uint64_t count() noexcept { return ++sequence_; }
  CallHistory& history() noexcept { return history_; }
  const RefusedCalls& refused() const noexcept { return refused_; }

  /// Gives a call its place in the order of calls: number, channel, salt, call record.
  [[gnu::always_inline]] PlacedCall place(CallPlan& call_plan, Channels& channels) noexcept {
    const PlacedCall placed = {&call_plan, channels.next(), count(), history_.salt()};
    channels.advance_next();
    history_.add(call_plan.shape.signature);
    record(placed);
    return placed;
  }
  /// The same for a request; a persistent operation has an order and a channel of its own.
  void place(Request& request, CallPlan& call_plan, Channels& channels) noexcept {
    if (request.channel < 0) {
      static_cast<PlacedCall&>(request) = place(call_plan, channels);
      return;
    }
    const auto channel = static_cast<std::size_t>(request.channel);
    static_cast<PlacedCall&>(request) = {&call_plan, channel, persistent_sequence(channel, ++channels[channel].starts),
                                         request.salt_prepared + 2 * request.starts_refused};
    record(request);
  }
  /// Writes a call into the call records. `marks`: added to its kind.
  void record(const PlacedCall& placed, std::uint64_t marks = 0) noexcept {
    const CallPlan& call_plan = *placed.call_plan;
    const std::uint64_t kind = salted(call_plan.record.kind ^ marks, placed.salt);
    write_record(control_, {placed.sequence, call_plan.record.count, kind, call_plan.spec.root});
  }
  /// Call number `sequence` was refused. Returns the notice for the members.
  const RefusalNotice& refuse(std::uint64_t sequence, const char* reason) noexcept {
    history_.add_refused();
    return refused_.add(sequence, reason);
  }
  /// All calls have ended.
  void end_all() noexcept { end_below(sequence_ + 1); }
  /// All calls below that one have ended, the oldest that is in flight.
  void end_below(std::uint64_t sequence) noexcept { control_.completed.store(sequence - 1, std::memory_order_release); }
  /// Records that this rank is attending to a call that it waits in.
  void note_attentive(std::int64_t now_ns) noexcept {
    control_.last_attentive_ns.store(now_ns, std::memory_order_relaxed);
  }

  /// The snapshot of the call that this rank waits in, for other nodes.
  CallSnapshot snapshot_of(const Request& request) const noexcept;
  /// The record about a call.
  std::optional<CallSnapshot> recorded(std::uint64_t sequence) const noexcept {
    return read_record(control_, sequence);
  }
  /// All records, by record_index(); sequence 0: none.
  void copy_records(std::span<CallSnapshot, kCallRecords> to) const noexcept;
  /// The snapshot of the last call in order, which may have ended; nothing if there is none, or if it was refused.
  std::optional<CallSnapshot> last_snapshot() const noexcept;
  /// The next snapshot for other nodes: during a persistent operation it and the last call in order take turns.
  CallSnapshot next_snapshot(const Request& request) noexcept;

 private:
  TeamControl& control_;
  std::uint64_t sequence_ = 0;
  CallHistory history_;
  RefusedCalls refused_;
  bool reports_call_in_order_ = false;  ///< next_snapshot()
};

}  // namespace torii
