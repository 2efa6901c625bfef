// SPDX-License-Identifier: Apache-2.0
// Reads and checks the buffers of a request.
#include "api/team/call_buffers.hpp"

#include <cstring>
#include <new>
#include <numeric>

#include "api/team/unequal_blocks.hpp"

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
  const std::size_t bytes = request.input_bytes();
  if (request.input_copy_bytes < bytes) {
    request.input_copy.reset(new (std::nothrow) std::byte[bytes]);
    request.input_copy_bytes = request.input_copy == nullptr ? 0 : bytes;
    if (request.input_copy == nullptr) return false;
  }
  if (bytes != 0) std::memcpy(request.input_copy.get(), request.arguments.input, bytes);
  return true;
}

}  // namespace torii
