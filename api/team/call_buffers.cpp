// SPDX-License-Identifier: Apache-2.0
// Reads and checks the buffers of a request.
#include "api/team/call_buffers.hpp"

#include <cstring>
#include <new>
#include <numeric>

#include "api/team/finish.hpp"
#include "api/team/unequal_blocks.hpp"
#include "reduce_kernels/average.hpp"

namespace torii {

void read_lengths(Request& request, const Membership& members) {
  CallArguments& arguments = request.arguments;
  if (arguments.block_counts != nullptr && request.block_counts.empty()) {
    request.block_counts = read_block_counts(arguments, members.ranks());
    arguments.block_counts = request.block_counts.data();
    arguments.count = std::accumulate(request.block_counts.begin(), request.block_counts.end(), std::size_t{0});
  } else if (arguments.unequal && request.unequal == nullptr) {
    request.unequal = read_blocks(arguments, members.ranks(), members.rank());
  }
}

void throw_missing_buffer(bool is_result) {
  throw Error(Status::invalid_argument, is_result ? "result is NULL, but count is not 0"
                                                  : "input is NULL, but count is not 0 (in place: input == result)");
}

namespace {

/// False when there is no memory.
bool make_room(std::unique_ptr<std::byte[]>& memory, std::size_t& has_bytes, std::size_t bytes) noexcept {
  if (has_bytes >= bytes) return true;
  memory.reset(new (std::nothrow) std::byte[bytes]);
  has_bytes = memory == nullptr ? 0 : bytes;
  return memory != nullptr;
}

}  // namespace

bool set_input_aside(Request& request) noexcept {
  const CallPlan& call_plan = *request.call_plan;
  const std::size_t bytes = request.input_bytes();
  if (!make_room(request.input_copy, request.input_copy_bytes, bytes)) return false;
  if (call_plan.sums_as_float) {
    widen(call_plan, request.arguments.input, request.input_copy.get(), bytes / sizeof(float));
    return make_room(request.result_copy, request.result_copy_bytes, request.result_bytes());
  }
  if (call_plan.multiplies) {
    const Type type = request.arguments.type;
    kernels::multiply(type, request.arguments.input, request.arguments.factor.data(), request.input_copy.get(),
                      bytes / size_of(type));
    return true;
  }
  if (bytes != 0) std::memcpy(request.input_copy.get(), request.arguments.input, bytes);
  return true;
}

}  // namespace torii
