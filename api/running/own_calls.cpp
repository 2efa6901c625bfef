// SPDX-License-Identifier: Apache-2.0
// The reports of a rank about its calls.
#include "api/running/own_calls.hpp"

namespace torii {

Standing OwnCalls::standing(const Request& request) const noexcept {
  const CallPlan& call_plan = *request.call_plan;
  return {request.sequence, call_plan.record.count, salted(call_plan.record.kind, request.salt),
          call_plan.arguments.root, control_.completed.load(std::memory_order_acquire)};
}

std::optional<Standing> OwnCalls::last_told() const noexcept {
  if (sequence_ == 0) return std::nullopt;
  std::optional<Standing> last = shown(sequence_);
  if (last) last->completed = control_.completed.load(std::memory_order_acquire);
  return last;
}

Standing OwnCalls::next_told(const Request& request) noexcept {
  tells_call_in_order_ = is_persistent(request.sequence) && !tells_call_in_order_;
  if (!tells_call_in_order_) return standing(request);
  return last_told().value_or(standing(request));
}

}  // namespace torii
