// SPDX-License-Identifier: Apache-2.0
// Scatter and gather of unequal blocks by plans of flows. A block passes ranks that neither send nor take it, and a
// plan runs as many segments as the longest block has. So all ranks must know all lengths. The root does: it broadcasts
// them on the call's channel, and what follows runs over a layout of these lengths.
//
//   scatter   root: lengths, blocks ...        blocks are right behind the lengths: nobody waits for these alone
//   gather    root: lengths; then the others: blocks ...        the lengths' way is added
//
// A persistent operation keeps its lengths, so they are told once, when it is first started.
#include "api/calls/call_buffers.hpp"
#include "api/calls/plan_maker.hpp"

namespace torii {
namespace {

/// Where every block begins when they follow each other, and where the last one ends.
std::vector<std::size_t> offsets_of(const std::vector<std::uint64_t>& lengths) {
  std::vector<std::size_t> offsets = {0};
  for (const std::uint64_t length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

}  // namespace

CallBuffers length_buffers(const Request& request) noexcept {
  CallBuffers buffers;
  buffers.input = buffers.result = reinterpret_cast<std::uintptr_t>(request.unequal->lengths.data());
  buffers.salt = request.salt;
  return buffers;
}

void take_lengths(Request& request, int rank) {
  UnequalBlocks& unequal = *request.unequal;
  const std::vector<std::size_t> offsets = offsets_of(unequal.lengths);
  unequal.shape = request.call_plan->shape;
  unequal.shape.layout = Layout(offsets, request.call_plan->selected->request.tuning.segment_bytes);
  unequal.shape.non_temporal = offsets.back() >= kNonTemporalBytes;
  unequal.own_shift_bytes = static_cast<std::int64_t>(offsets[static_cast<std::size_t>(rank)]);
  if (rank != request.call.spec.root) return;
  const bool is_scatter = request.call.spec.collective == Collective::scatter;
  unequal.shifts = is_scatter ? unequal.blocks.send_offsets : unequal.blocks.take_offsets;
  bool follow_each_other = true;
  for (std::size_t block = 0; block < unequal.shifts.size(); ++block) {
    unequal.shifts[block] -= static_cast<std::int64_t>(offsets[block]);
    if (unequal.lengths[block] != 0 && unequal.shifts[block] != 0) follow_each_other = false;
  }
  if (follow_each_other) unequal.shifts.clear();
}

/// Peers reach a vector in place only where its blocks follow each other: they know the layout and no displacements.
CallBuffers block_buffers(const Request& request, const Context& context) noexcept {
  const UnequalBlocks& unequal = *request.unequal;
  const CallMemory& memory = request.call.memory;
  const bool is_scatter = request.call.spec.collective == Collective::scatter;
  const std::int64_t* const shifts = unequal.shifts.empty() ? nullptr : unequal.shifts.data();
  const std::int64_t input_shift = is_scatter ? 0 : unequal.own_shift_bytes;
  const std::int64_t result_shift = is_scatter ? unequal.own_shift_bytes : 0;
  CallBuffers buffers;
  buffers.salt = request.salt;
  buffers.input = reinterpret_cast<std::uintptr_t>(memory.input) - static_cast<std::uintptr_t>(input_shift);
  buffers.result = reinterpret_cast<std::uintptr_t>(memory.result) - static_cast<std::uintptr_t>(result_shift);
  (is_scatter ? buffers.input_shifts : buffers.result_shifts) = shifts;
  if (buffers.input_shifts == nullptr && unequal.input_bytes != 0) {
    if (const auto offset = context.reachable(memory.input, unequal.input_bytes)) {
      buffers.input_reachable = true;
      buffers.input_offset = *offset - input_shift;
    }
  }
  if (buffers.result_shifts == nullptr && unequal.result_bytes != 0) {
    if (const auto offset = context.reachable(memory.result, unequal.result_bytes)) {
      buffers.result_reachable = true;
      buffers.result_offset = *offset - result_shift;
    }
  }
  return buffers;
}

}  // namespace torii
