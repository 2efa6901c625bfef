// SPDX-License-Identifier: Apache-2.0
// A collective as a group of calls on parts of its vectors, which the library runs together or one by one.
#include "tools/torii-sim/faults/calls.hpp"
#include "tools/torii-sim/faults/elements.hpp"

namespace torii::faults {

bool is_made_in_parts(const DrawnCall& spec) {
  const bool has_parts = spec.collective == TORII_ALLREDUCE || spec.collective == TORII_REDUCE ||
                         spec.collective == TORII_BROADCAST || spec.collective == TORII_SCAN;
  return spec.kind == CallKind::collective && has_parts && mixed(spec.seed + 1) % 4 == 0;
}

torii_status run_in_parts(torii_team* team, const DrawnCall& spec, const torii_call& call) {
  if (const torii_status begun = torii_group_begin(team); begun != TORII_OK) return begun;
  const std::size_t bytes = torii_type_bytes(call.type);
  const std::size_t parts = 2 + mixed(spec.seed + 2) % 4;
  const auto shifted = [](const void* buffer, std::size_t by) {
    return buffer == nullptr ? nullptr : static_cast<const std::byte*>(buffer) + by;
  };
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t first = call.count * part / parts;
    torii_call one = call;
    one.count = call.count * (part + 1) / parts - first;
    one.input = shifted(call.input, first * bytes);
    one.result = const_cast<std::byte*>(shifted(call.result, first * bytes));
    (void)torii_run(team, &one);  // joins; if it is refused, so is the group
  }
  return torii_group_end(team);
}

}  // namespace torii::faults
