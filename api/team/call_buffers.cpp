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

bool set_input_aside(Request& request) noexcept {
  const CallPlan& call_plan = *request.call_plan;
  const std::size_t bytes = request.input_bytes();
  if (!request.input_copy.make_room(bytes)) return false;
  if (call_plan.sums_as_float) {
    widen(call_plan, request.arguments.input, request.input_copy.data.get(), bytes / sizeof(float));
    return request.result_copy.make_room(request.result_bytes());
  }
  if (call_plan.multiplies) {
    const Type type = request.arguments.type;
    kernels::multiply(type, request.arguments.input, request.arguments.factor.data(), request.input_copy.data.get(),
                      bytes / size_of(type));
    return true;
  }
  if (bytes != 0) std::memcpy(request.input_copy.data.get(), request.arguments.input, bytes);
  return true;
}

}  // namespace torii
