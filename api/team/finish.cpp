// SPDX-License-Identifier: Apache-2.0
// Truth values become 0 or 1 by a fold of one source.
#include "api/team/finish.hpp"

namespace torii {

bool needs_finish(const CallArguments& arguments, int rank, int ranks) noexcept {
  if (!combines(arguments.collective) || arguments.op == Op::user || arguments.type != Type::boolean) return false;
  return ranks == 1 || (is_prefix(arguments.collective) && rank <= 1);
}

void finish(const CallPlan& call_plan, void* result, std::size_t count) noexcept {
  const void* source = result;
  call_plan.shape.fold({.sources = &source, .source_count = 1, .targets = &result, .target_count = 1}, count);
}

}  // namespace torii
