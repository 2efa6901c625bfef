// SPDX-License-Identifier: Apache-2.0
// Blocking calls that begin at once, without a request, and mostly end in the first polls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "api/agreement/team_control.hpp"
#include "api/calls/unequal_blocks.hpp"
#include "api/context/context.hpp"
#include "api/running/channels.hpp"
#include "api/running/in_flight.hpp"
#include "api/running/own_calls.hpp"
#include "api/running/waits.hpp"

namespace torii {

/// A call that has its place in the order of calls.
struct BegunCall {
  CallPlan& call_plan;
  std::size_t channel;
  std::uint32_t salt;
  /// Where the team keeps its memory for unequal blocks; nullptr for other calls. A call that waits borrows it.
  std::unique_ptr<UnequalBlocks>* blocks = nullptr;
};

/// The parts of a team that order its calls and move them.
struct TeamCalls {
  Channels& channels;
  OwnCalls& calls;
  InFlight& in_flight;
  Waits& waits;
};

/// The fast paths decline teams with operations in flight, and calls that must report an error; Operations::run() does
/// these.
[[gnu::always_inline]] inline bool may_begin_at_once(const Context& context, const FailureSign& failed,
                                                     const InFlight& in_flight) noexcept {
  return in_flight.count() == 0 && !in_flight.is_poisoned() && !context.is_forked_child() && !failed.is_set();
}

[[gnu::always_inline]] inline BegunCall take_next_place(CallPlan& call_plan, Channels& channels,
                                                        OwnCalls& calls) noexcept {
  const BegunCall begun = {call_plan, channels.next(), calls.history().salt()};
  channels.advance_next();
  calls.history().add(call_plan.shape.signature);
  calls.record(call_plan, salted(call_plan.record.kind, begun.salt), calls.count());
  return begun;
}

/// Polls a call that has begun, and tells whether it has ended. Between nodes a poll is a system call or more: there
/// the call waits like others as soon as this rank has done something.
[[gnu::always_inline]] inline bool ends_in_first_polls(Execution& execution, bool on_one_node) noexcept {
  for (int poll = 0; poll < kQuickPolls; ++poll) {
    const Execution::Progress progress = execution.advance();
    if (progress == Execution::Progress::done) return true;
    if (progress == Execution::Progress::moved && !on_one_node) return false;
  }
  return false;
}

/// The call has ended in the first polls.
[[gnu::always_inline]] inline void end_at_once(OwnCalls& calls, InFlight& in_flight) noexcept {
  calls.end_all();
  if (in_flight.has_pairs()) [[unlikely]] {
    in_flight.note_move();
  }
}

/// The call has to wait: from here on it is a request like any other. Returns its status when it has ended.
Status go_on(const BegunCall& begun, const void* input, void* result, const TeamCalls& team) noexcept;

}  // namespace torii
