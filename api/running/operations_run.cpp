// SPDX-License-Identifier: Apache-2.0
// Blocking calls. A call whose plan is known begins at once: with few instructions up to the first store, and without a
// request if it ends in the first polls.
#include <exception>
#include <utility>

#include "api/calls/call_buffers.hpp"
#include "api/running/caught.hpp"
#include "api/running/operations.hpp"
#include "runtime/base/cancellation.hpp"

namespace torii {
namespace {

/// Polls a call that has begun, and tells whether it has ended. `is_short`: even if this rank has done something, the
/// call may end within the next polls. Other calls wait then: between nodes a poll is a system call or more, and calls
/// of many steps need the other ranks, which may need this CPU.
[[gnu::always_inline]] inline bool ends_in_first_polls(Execution& execution, bool is_short) noexcept {
  for (int poll = 0; poll < kQuickPolls; ++poll) {
    const Execution::Progress progress = execution.advance();
    if (progress == Execution::Progress::done) return true;
    if (progress == Execution::Progress::moved && !is_short) return false;
  }
  return false;
}

/// A call that was in no request has ended.
[[gnu::always_inline]] inline Status end_at_once(OwnCalls& calls, InFlight& in_flight) noexcept {
  calls.end_all();
  if (in_flight.has_pairs()) [[unlikely]] {
    in_flight.note_move();
  }
  return Status::ok;
}

/// Reads the lengths of unequal blocks into memory that the team keeps. False for lists of addresses, for an alltoall
/// in place, which needs a copy of its input, and for all that start() refuses.
bool reads_blocks(const CallDescription& call, const Membership& members,
                  std::unique_ptr<UnequalBlocks>& blocks) noexcept {
  if (call.blocks()->input_blocks != nullptr || call.blocks()->result_blocks != nullptr) return false;
  try {
    if (blocks == nullptr) blocks = std::make_unique<UnequalBlocks>();
    read_blocks(call, members.ranks(), members.rank(), *blocks);
    return blocks->copied_from.empty();
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

Status Operations::run(const CallDescription& call) noexcept {
  // In a function of its own: this one keeps few registers, and does not pay for the lock.
  TeamUse& use = waits_.use();
  const bool is_direct = !context_.is_forked_child() && failed_.is_record();
  if (!is_direct || !use.try_begin_alone(0)) [[unlikely]] {
    return run_held(call);
  }
  const Status status = run_inside(call);
  use.end_alone();
  return status;
}

/// For a team that several threads call, or on several nodes, whose calls make system calls.
[[gnu::noinline]] Status Operations::run_held(const CallDescription& call) noexcept {
  const CancellationHeld held(waits_.several_nodes());
  const Entry entry = waits_.enter();
  return entry.is_refused() ? entry.refuse() : run_inside(call);
}

Status Operations::run(Request& request) noexcept {
  const CancellationHeld held(waits_.several_nodes());
  const Entry entry = waits_.enter();
  if (entry.is_refused()) return entry.refuse();
  const Status status = start(request);
  return status != Status::ok ? status : waits_.run_to_completion(request);
}

Status Operations::run_at_once(PairCall& call, int polls, bool& has_ended) noexcept {
  has_ended = false;
  const CancellationHeld held(waits_.several_nodes());
  const Entry entry = waits_.enter();
  if (entry.is_refused()) return entry.refuse();
  const Status refused = caught([&] { pairs_.check(call); });
  if (refused != Status::ok || has_failed()) return refused;
  has_ended = pairs_.ends_at_once(call, polls);
  if (has_ended) in_flight_.note_move();
  return Status::ok;
}

[[gnu::noinline]] Status Operations::run_as_request(const CallDescription& call) noexcept {
  const CancellationHeld held(waits_.several_nodes());
  Request request(call);
  const Status status = start(request);
  return status != Status::ok ? status : waits_.run_to_completion(request);
}

/// Linear programs need addresses alone. All that cannot begin at once is left to start(), which also tells what is
/// wrong with a call.
[[gnu::always_inline]] inline Status Operations::run_inside(const CallDescription& call) noexcept {
  if (!in_flight_.is_quiet() || failed_.is_set()) return run_as_request(call);
  CallPlan* const call_plan = find_plan(call.spec);
  if (call_plan == nullptr || !call_plan->is_plain || call.has_functions()) [[unlikely]] {
    return run_as_request(call);
  }
  const void* const input = input_of(call.spec.collective, call.memory);
  void* const result = call.memory.result;
  if ((call_plan->input_bytes != 0 && input == nullptr) || (call_plan->result_bytes != 0 && result == nullptr)) {
    return run_as_request(call);
  }
  const std::size_t at = channels_.next();
  const bool has_program = call_plan->on_channels.size() > at && call_plan->on_channels[at].has_program;
  if (!has_program && !plans_.refresh_on(*call_plan, at)) return run_flows(call, *call_plan);
  const CallPlan::OnChannel& installed = call_plan->on_channels[at];
  const PlacedCall placed = calls_.place(*call_plan, channels_);
  Execution& execution = channels_[at].execution;
  execution.begin_linear(*installed.plan, call_plan->shape, *installed.memory,
                         address_of(input, call_plan->input_shift_bytes),
                         address_of(result, call_plan->result_shift_bytes), placed.salt);
  if (ends_in_first_polls(execution, failed_.is_record())) {
    return end_at_once(calls_, in_flight_);
  }
  return go_on(call, placed, nullptr);
}

/// The same for other plans. A pairwise exchange of unequal blocks keeps its plan whatever their lengths are.
[[gnu::noinline]] Status Operations::run_flows(const CallDescription& call, CallPlan& call_plan) noexcept {
  const std::size_t at = channels_.next();
  const bool is_unequal = call.spec.has(CallMark::unequal);
  if (!call_plan.has_plan_on(at)) return run_as_request(call);
  if (is_unequal ? !reads_blocks(call, members_, blocks_) : needs_input_copy(call, nullptr))
    return run_as_request(call);
  std::unique_ptr<UnequalBlocks>* const blocks = is_unequal ? &blocks_ : nullptr;
  CallBuffers buffers = buffers_at(call_plan, input_of(call.spec.collective, call.memory), call.memory.result,
                                   is_unequal ? blocks_.get() : nullptr, context_);
  const PlacedCall placed = calls_.place(call_plan, channels_);
  buffers.salt = placed.salt;
  Execution& execution = channels_[at].execution;
  execution.begin(*call_plan.on_channels[at].plan, call_plan.shape, buffers);
  if (ends_in_first_polls(execution, is_unequal && blocks_->are_short && failed_.is_record())) {
    return end_at_once(calls_, in_flight_);
  }
  return go_on(call, placed, blocks);
}

/// The call has to wait: from here on it is a request like any other. `blocks`: where the team keeps its memory for
/// unequal blocks, which the call borrows; nullptr for other calls.
[[gnu::noinline]] Status Operations::go_on(const CallDescription& call, const PlacedCall& placed,
                                           std::unique_ptr<UnequalBlocks>* blocks) noexcept {
  Request request(call, placed);
  if (blocks != nullptr) request.unequal = std::move(*blocks);
  channels_[placed.runs_on].current = &request;
  in_flight_.add(request);
  const Status status = waits_.resume(request);
  if (blocks != nullptr) *blocks = std::move(request.unequal);
  return status;
}

}  // namespace torii
