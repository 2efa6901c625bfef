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
  const CallArguments& arguments = request.arguments;
  if (arguments.block_counts != nullptr || arguments.unequal) read_lengths(request, members);
}
[[noreturn]] void throw_missing_buffer(bool is_result);
/// The checks that each call has to pass; all others are made once for a call plan. Throws Error{invalid_argument}.
inline void check_buffers(const CallArguments& arguments, const CallPlan& call_plan) {
  const bool has_memory = arguments.access.load == nullptr;
  if (has_memory && call_plan.result_bytes != 0 && arguments.result == nullptr) throw_missing_buffer(true);
  if (call_plan.input_bytes != 0 && arguments.input == nullptr && arguments.collective != Collective::broadcast &&
      arguments.leaf.write == nullptr) {
    throw_missing_buffer(false);
  }
}
inline bool needs_input_copy(const Request& request) noexcept {
  const CallArguments& arguments = request.arguments;
  if (arguments.collective != Collective::alltoall) return false;
  return request.unequal == nullptr ? arguments.input == arguments.result : !request.unequal->copied_from.empty();
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
  if (request.call_plan->sums_as_float || request.call_plan->multiplies) return set_input_aside(request);
  if (!needs_input_copy(request)) return true;
  return request.call_plan->on_channels[request.runs_on].has_program || set_input_aside(request);
}
/// Says whether and where peers reach buffers of so many bytes, of which one with 0 bytes may be anywhere.
inline void find_reach(const void* input, std::size_t input_bytes, const void* result, std::size_t result_bytes,
                       const CallPlan& call_plan, const Context& context, CallBuffers& buffers) noexcept {
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
}
inline CallBuffers buffers_of(const Request& request, const Context& context, bool by_value) noexcept {
  const CallPlan& call_plan = *request.call_plan;
  const CallArguments& arguments = request.arguments;
  CallBuffers buffers;
  buffers.salt = request.salt;
  const bool broadcast = arguments.collective == Collective::broadcast;
  const void* input = broadcast ? arguments.result : arguments.input;
  if (!by_value && needs_input_copy(request)) input = request.copies.input.data.get();
  const void* result = arguments.result;
  if (call_plan.multiplies) input = request.copies.input.data.get();
  if (call_plan.sums_as_float) {
    input = request.copies.input.data.get();
    result = request.copies.result.data.get();
  }
  if (request.copies.operands != nullptr) input = request.copies.operands;
  buffers.input = reinterpret_cast<std::uintptr_t>(input) - static_cast<std::uintptr_t>(call_plan.input_shift_bytes);
  buffers.result = reinterpret_cast<std::uintptr_t>(result) - static_cast<std::uintptr_t>(call_plan.result_shift_bytes);
  if (arguments.access.load != nullptr) buffers.access = &arguments.access;
  // Then everything moves by value: where the buffers lie does not matter.
  if (by_value || buffers.access != nullptr) return buffers;
  if (request.unequal != nullptr) {
    buffers.blocks = &request.unequal->blocks;
    if (request.unequal->are_short) return buffers;
  }
  find_reach(input, request.input_bytes(), result, request.result_bytes(), call_plan, context, buffers);
  if (request.unequal != nullptr && request.unequal->has_lists()) reach_lists(*request.unequal, context, buffers);
  return buffers;
}

// Scatter and gather of unequal blocks that run as flows (call_lengths.cpp).

/// The buffers of the broadcast by which the root tells the lengths.
CallBuffers length_buffers(const Request& request) noexcept;
/// Lays out blocks of the lengths that the root has told.
void take_lengths(Request& request, int rank);
CallBuffers block_buffers(const Request& request, const Context& context) noexcept;

}  // namespace torii
