// SPDX-License-Identifier: Apache-2.0
// Reads and checks the buffers of a request.
#include "api/calls/call_buffers.hpp"

#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <utility>

#include "api/calls/finish.hpp"
#include "api/calls/unequal_blocks.hpp"
#include "reduce_kernels/average.hpp"

namespace torii {

void read_lengths(Request& request, const Membership& members) {
  CallDescription& call = request.call;
  if (call.block_counts() != nullptr && request.block_counts.empty()) {
    request.block_counts = read_block_counts(call, members.ranks());
    take_block_counts(request.block_counts, call);
  } else if (call.spec.has(CallMark::unequal) && request.unequal == nullptr) {
    auto unequal = std::make_unique<UnequalBlocks>();
    read_blocks(call, members.ranks(), members.rank(), *unequal);
    request.unequal = std::move(unequal);
    if (request.unequal->lists_input) call.memory.input = request.unequal->input_begin;
    if (request.unequal->lists_result) call.memory.result = request.unequal->result_begin;
  }
}

void throw_missing_buffer(bool is_result) {
  throw Error(Status::invalid_argument, is_result ? "result is NULL, but count is not 0"
                                                  : "input is NULL, but count is not 0 (in place: input == result)");
}

namespace {

void copy_blocks(const UnequalBlocks& unequal, std::byte* to) noexcept {
  const ExchangeBlocks& blocks = unequal.blocks;
  for (std::size_t peer = 0; peer < blocks.send_bytes.size(); ++peer) {
    if (blocks.send_bytes[peer] == 0) continue;
    std::memcpy(to + blocks.send_offsets[peer], unequal.copied_from[peer], blocks.send_bytes[peer]);
  }
}

/// The arena's offset of a list's first block, if peers reach each block at its distance from there.
std::optional<std::int64_t> reach_of_list(const std::byte* begin, const std::vector<std::size_t>& bytes,
                                          const std::vector<std::int64_t>& offsets, const Context& context) noexcept {
  std::optional<std::int64_t> first;
  for (std::size_t peer = 0; peer < bytes.size(); ++peer) {
    if (bytes[peer] == 0) continue;
    const auto address = reinterpret_cast<std::uintptr_t>(begin) + static_cast<std::uintptr_t>(offsets[peer]);
    const auto offset = context.reachable(reinterpret_cast<const void*>(address), bytes[peer]);
    if (!offset || (first && *first != *offset - offsets[peer])) return {};
    first = *offset - offsets[peer];
  }
  return first;
}

}  // namespace

/// Memory of torii_allocate has the same order at both ends. Adopted memory may lie elsewhere in the arena: then blocks
/// travel by value.
void reach_lists(const UnequalBlocks& unequal, const Context& context, CallBuffers& buffers) noexcept {
  const ExchangeBlocks& blocks = unequal.blocks;
  if (unequal.lists_input && unequal.copied_from.empty()) {
    const auto offset = reach_of_list(unequal.input_begin, blocks.send_bytes, blocks.send_offsets, context);
    buffers.input_reachable = offset.has_value();
    buffers.input_offset = offset.value_or(0);
  }
  if (unequal.lists_result) {
    const auto offset = reach_of_list(unequal.result_begin, blocks.take_bytes, blocks.take_offsets, context);
    buffers.result_reachable = offset.has_value();
    buffers.result_offset = offset.value_or(0);
  }
}

bool set_input_aside(Request& request) noexcept {
  const CallPlan& call_plan = *request.call_plan;
  const std::size_t bytes = request.input_bytes();
  // The leaves have been folded to float.
  if (call_plan.leaves != nullptr) return request.copies.result.make_room(request.result_bytes());
  if (!request.copies.input.make_room(bytes)) return false;
  if (call_plan.sums_as_float) {
    widen(call_plan, request.call.memory.input, request.copies.input.data.get(), bytes / sizeof(float));
    return request.copies.result.make_room(request.result_bytes());
  }
  if (multiplies(call_plan.spec)) {
    const Type type = request.call.spec.type;
    kernels::multiply(type, request.call.memory.input, request.call.factor()->data(), request.copies.input.data.get(),
                      bytes / size_of(type));
    return true;
  }
  if (request.unequal != nullptr) {
    copy_blocks(*request.unequal, request.copies.input.data.get());
  } else if (bytes != 0) {
    std::memcpy(request.copies.input.data.get(), request.call.memory.input, bytes);
  }
  return true;
}

}  // namespace torii
