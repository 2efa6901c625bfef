// SPDX-License-Identifier: Apache-2.0
// Sums are divided for an average, or rounded; truth values become 0 or 1 by a fold of one source.
#include "api/calls/finish.hpp"

#include "reduce_kernels/average.hpp"

namespace torii {

bool needs_finish(const CallSpec& spec, int rank, int operands) noexcept {
  if (!combines(spec.collective) || spec.op == OpNumber::user) return false;
  if (averages(spec)) return true;
  return spec.type == Type::boolean && (operands == 1 || (is_prefix(spec.collective) && rank <= 1));
}

void finish(const CallPlan& call_plan, const void* from, void* result, std::size_t count) noexcept {
  if (averages(call_plan.spec)) {
    kernels::divide(call_plan.spec.type, {from, call_plan.sums_as_float}, result, count, call_plan.operands);
  } else if (call_plan.sums_as_float) {
    const kernels::FoldFn fold = kernels::find(Op::sum, call_plan.spec.type);
    const std::uint8_t is_wide = 1;
    fold({.sources = &from, .source_count = 1, .targets = &result, .target_count = 1, .wide_sources = &is_wide}, count);
  } else {
    call_plan.shape.fold({.sources = &from, .source_count = 1, .targets = &result, .target_count = 1}, count);
  }
}

void widen(const CallPlan& call_plan, const void* input, void* floats, std::size_t count) noexcept {
  const kernels::FoldFn fold = kernels::find(Op::sum, call_plan.spec.type);
  fold({.sources = &input, .source_count = 1, .targets = &floats, .target_count = 1, .wide_targets = 1}, count);
}

}  // namespace torii
