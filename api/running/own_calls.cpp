// SPDX-License-Identifier: Apache-2.0
// The reports of a rank about its calls.
#include "api/running/own_calls.hpp"

namespace torii {

CallSnapshot OwnCalls::snapshot_of(const Request& request) const noexcept {
  const CallPlan& call_plan = *request.call_plan;
  return {request.sequence, call_plan.record.count, salted(call_plan.record.kind, request.salt), call_plan.spec.root,
          control_.completed.load(std::memory_order_acquire)};
}

void OwnCalls::copy_records(std::span<CallSnapshot, kCallRecords> to) const noexcept {
  for (std::size_t i = 0; i < kCallRecords; ++i) {
    // Relaxed: this rank alone writes them.
    const std::uint64_t sequence = control_.call_records[i].sequence.load(std::memory_order_relaxed);
    to[i] = sequence == 0 ? CallSnapshot{} : recorded(sequence).value_or(CallSnapshot{});
  }
}

std::optional<CallSnapshot> OwnCalls::last_snapshot() const noexcept {
  if (sequence_ == 0) return std::nullopt;
  std::optional<CallSnapshot> last = recorded(sequence_);
  if (last) last->completed = control_.completed.load(std::memory_order_acquire);
  return last;
}

CallSnapshot OwnCalls::next_snapshot(const Request& request) noexcept {
  reports_call_in_order_ = is_persistent(request.sequence) && !reports_call_in_order_;
  if (!reports_call_in_order_) return snapshot_of(request);
  return last_snapshot().value_or(snapshot_of(request));
}

}  // namespace torii
