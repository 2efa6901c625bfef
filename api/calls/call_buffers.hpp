// SPDX-License-Identifier: Apache-2.0
// The buffers of a request, as the executor takes them.
#pragma once

#include "api/agreement/membership.hpp"
#include "api/calls/request.hpp"
#include "runtime/execution/execution.hpp"

namespace torii {

// Every started call passes these checks, so they are inline; the rare work behind them is not.

/// Copies the lengths of a call with unequal blocks, once. Throws Error{invalid_argument}.
void read_lengths(Request& request, const Membership& members);
inline void take_blocks(Request& request, const Membership& members) {
  if (has_unequal_blocks(request.call.spec)) read_lengths(request, members);
}
/// The vector that a broadcast's root sends is its result.
inline const void* input_of(Collective collective, const CallMemory& memory) noexcept {
  return collective == Collective::broadcast ? memory.result : memory.input;
}
[[noreturn]] void throw_missing_buffer(bool is_result);
/// The checks that each call has to pass; all others are made once for a call plan. Throws Error{invalid_argument}.
inline void check_buffers(const CallDescription& call, const CallPlan& call_plan) {
  if (call.access() != nullptr) return;
  if (call_plan.result_bytes != 0 && call.memory.result == nullptr) throw_missing_buffer(true);
  if (call_plan.input_bytes != 0 && call.memory.input == nullptr && call.spec.collective != Collective::broadcast &&
      !call.has_functions()) {
    throw_missing_buffer(false);
  }
}
/// Whether an alltoall is in place: it then sends its input while results arrive.
inline bool needs_input_copy(const CallDescription& call, const UnequalBlocks* unequal) noexcept {
  if (call.spec.collective != Collective::alltoall) return false;
  return unequal == nullptr ? call.memory.input == call.memory.result : !unequal->copied_from.empty();
}
/// Says whether and where peers reach the blocks of lists.
void reach_lists(const UnequalBlocks& unequal, const Context& context, CallBuffers& buffers) noexcept;
/// Sets an alltoall's input aside, or makes the copies of a call whose sums are made as float or whose input is
/// multiplied. (Folds that multiply would need the factor of every source, and peers that read in place those of
/// others.) False when there is no memory.
bool set_input_aside(Request& request) noexcept;
/// Copies an alltoall's input where it is the result's memory. A linear program needs no copy: the verifier has proved
/// that it reads each block before it stores in its place. False when there is no memory.
inline bool copy_input(Request& request) noexcept {
  if (request.call_plan->sums_as_float || multiplies(request.call.spec)) return set_input_aside(request);
  if (!needs_input_copy(request.call, request.unequal.get())) return true;
  return request.call_plan->on_channels[request.runs_on].has_program || set_input_aside(request);
}
/// Byte 0 of a vector whose part at `shift_bytes` begins at `buffer`.
inline std::uintptr_t address_of(const void* buffer, std::ptrdiff_t shift_bytes) noexcept {
  return reinterpret_cast<std::uintptr_t>(buffer) - static_cast<std::uintptr_t>(shift_bytes);
}
/// The buffers of a call without a linear program: where they are, and whether and where peers reach them. Buffers of 0
/// bytes may be anywhere.
inline CallBuffers buffers_at(const CallPlan& call_plan, const void* input, const void* result,
                              const UnequalBlocks* unequal, const Context& context) noexcept {
  CallBuffers buffers;
  buffers.input = address_of(input, call_plan.input_shift_bytes);
  buffers.result = address_of(result, call_plan.result_shift_bytes);
  std::size_t input_bytes = call_plan.input_bytes, result_bytes = call_plan.result_bytes;
  if (unequal != nullptr) {
    buffers.blocks = &unequal->blocks;
    if (unequal->are_short) return buffers;
    input_bytes = unequal->input_bytes;
    result_bytes = unequal->result_bytes;
  }
  if (input_bytes != 0) {
    if (const auto offset = context.reachable(input, input_bytes)) {
      buffers.input_reachable = true;
      buffers.input_offset = *offset - call_plan.input_shift_bytes;
    }
  }
  if (result_bytes != 0) {
    if (const auto offset = context.reachable(result, result_bytes)) {
      buffers.result_reachable = true;
      buffers.result_offset = *offset - call_plan.result_shift_bytes;
    }
  }
  if (unequal != nullptr && unequal->has_lists()) reach_lists(*unequal, context, buffers);
  return buffers;
}
/// The buffers of a request, or its copies. `by_value`: it runs by its linear program, so it does not matter where the
/// buffers lie.
inline CallBuffers buffers_of(const Request& request, const Context& context, bool by_value) noexcept {
  const CallPlan& call_plan = *request.call_plan;
  const CallDescription& call = request.call;
  const void* input = input_of(call.spec.collective, call.memory);
  const void* result = call.memory.result;
  const bool is_set_aside = !by_value && needs_input_copy(call, request.unequal.get());
  if (is_set_aside || multiplies(call_plan.spec) || call_plan.sums_as_float) input = request.copies.input.data.get();
  if (call_plan.sums_as_float) result = request.copies.result.data.get();
  if (request.copies.operands != nullptr) input = request.copies.operands;
  CallBuffers buffers;
  if (by_value || call.access() != nullptr) {
    buffers.input = address_of(input, call_plan.input_shift_bytes);
    buffers.result = address_of(result, call_plan.result_shift_bytes);
    buffers.access = call.access();
  } else {
    buffers = buffers_at(call_plan, input, result, request.unequal.get(), context);
  }
  buffers.user = call.user();
  buffers.salt = request.salt;
  return buffers;
}

// Scatter and gather of unequal blocks that run as flows (call_lengths.cpp).

/// The buffers of the broadcast by which the root tells the lengths.
CallBuffers length_buffers(const Request& request) noexcept;
/// Lays out blocks of the lengths that the root has told.
void take_lengths(Request& request, int rank);
CallBuffers block_buffers(const Request& request, const Context& context) noexcept;

}  // namespace torii
