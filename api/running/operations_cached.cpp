// SPDX-License-Identifier: Apache-2.0
// A blocking call like the one before it: from the caller's arguments to the first store with few instructions.
#include "api/running/begun_call.hpp"
#include "api/running/operations.hpp"
#include "runtime/base/cancellation.hpp"

namespace torii {
namespace {

/// Whether the call equals the last call plan in all but its buffers. Arguments that a collective does not read may
/// differ from one call to the next. Then run() finds the same call plan by a longer way.
[[gnu::always_inline]] inline bool is_cached(const CallKey& call, const CallPlan* last_call_plan) noexcept {
  if (last_call_plan == nullptr) return false;
  const CallArguments& last = last_call_plan->arguments;
  if (call.collective != last_call_plan->key) return false;
  if (last.collective == Collective::barrier) return true;
  return call.count == last.count && call.type == static_cast<int>(last.type) && call.op == static_cast<int>(last.op) &&
         (call.root == last.root || !has_root(last.collective));
}

}  // namespace

[[gnu::always_inline]] inline bool Operations::repeat(const CallKey& call, Status& status) noexcept {
  if (!may_begin_at_once(context_, failed_, in_flight_)) return false;
  if (!is_cached(call, last_call_plan_)) [[unlikely]] {
    CallPlan* const recalled = plans_.recall(call);
    if (recalled == nullptr) return false;
    last_call_plan_ = recalled;
  }
  CallPlan& call_plan = *last_call_plan_;
  const std::size_t at = channels_.next();
  const bool has_program = call_plan.on_channels.size() > at && call_plan.on_channels[at].has_program;
  if (!has_program && !plans_.refresh_on(call_plan, at)) return false;
  const bool broadcast = call_plan.arguments.collective == Collective::broadcast;
  const void* const input = broadcast ? call.result : call.input;
  if ((call_plan.input_bytes != 0 && input == nullptr) || (call_plan.result_bytes != 0 && call.result == nullptr)) {
    return false;
  }
  const CallPlan::OnChannel& installed = call_plan.on_channels[at];
  const BegunCall begun = take_next_place(call_plan, channels_, calls_);
  Execution& execution = channels_[at].execution;
  execution.begin_linear(
      *installed.plan, call_plan.shape, *installed.memory,
      reinterpret_cast<std::uintptr_t>(input) - static_cast<std::uintptr_t>(call_plan.input_shift_bytes),
      reinterpret_cast<std::uintptr_t>(call.result) - static_cast<std::uintptr_t>(call_plan.result_shift_bytes),
      begun.salt);
  if (ends_in_first_polls(execution, failed_.is_record())) {
    end_at_once(calls_, in_flight_);
    status = Status::ok;
    return true;
  }
  status = go_on(begun, call.input, call.result, {channels_, calls_, in_flight_, waits_});
  return true;
}

bool Operations::run_cached(const CallKey& call, Status& status) noexcept {
  // In a function of its own: this one keeps few registers, and does not pay for the lock.
  TeamUse& use = waits_.use();
  const bool is_quiet = use.is_last_caller() && use.marks() == 0;
  if (!is_quiet || !failed_.is_record()) [[unlikely]] {
    return repeat_held(call, status);
  }
  use.set(TeamUse::kCalled);
  const bool is_run = repeat(call, status);
  use.set(0);
  return is_run;
}

/// For a team that several threads call, or on several nodes, whose calls make system calls.
[[gnu::noinline]] bool Operations::repeat_held(const CallKey& call, Status& status) noexcept {
  const CancellationHeld held(members_.several_nodes());
  const Entry entry = waits_.enter();
  if (!entry.is_refused()) return repeat(call, status);
  status = entry.refuse();
  return true;
}

}  // namespace torii
