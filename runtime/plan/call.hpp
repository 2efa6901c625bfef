// SPDX-License-Identifier: Apache-2.0
// The executor's input for a call: its kind, and where its vectors are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reduce_kernels/kernels.hpp"
#include "runtime/plan/layout.hpp"

namespace torii {

/// The properties that all calls of one kind share: computed once, used by every call.
struct CallShape {
  Layout layout;
  Type type = Type::u8;
  std::size_t element_bytes = 1;
  /// The size by which an element counts in the layout: element_bytes, or for a user's type the next power of two.
  std::size_t unit_bytes = 1;
  kernels::FoldFn fold = nullptr;  ///< nullptr for a user function and where nothing is combined
  bool non_temporal = false;       ///< results are stored past the caches
  std::uint32_t signature = 1;     ///< equal on all ranks of one call; odd, so never 0
  /// The distance in memory between the operands of a rank that has several. Equal on all ranks.
  std::size_t operand_stride_bytes = 0;
  std::size_t block_bytes = 0;  ///< alltoall, scatter, gather: what one rank has for another; 0 where that differs
};

/// The blocks of a call in which they have different lengths, by the rank of the team that they come from or go to.
struct ExchangeBlocks {
  std::vector<std::size_t> send_bytes;  ///< 0: no message, on either side
  std::vector<std::size_t> take_bytes;
  std::vector<std::int64_t> send_offsets;  ///< in bytes, from the input
  std::vector<std::int64_t> take_offsets;  ///< in bytes, from the result
};

/// A vector of the caller's that is not one stretch of bytes: the caller moves parts of it. `load` writes the bytes
/// [offset_bytes, offset_bytes + bytes) of the vector to `to`, `store` takes them from there. What was stored may be
/// loaded again.
struct Access {
  void (*load)(void* to, std::size_t offset_bytes, std::size_t bytes, void* data) = nullptr;
  void (*store)(const void* from, std::size_t offset_bytes, std::size_t bytes, void* data) = nullptr;
  void* data = nullptr;
};

/// One call's vectors. Addresses are those of byte 0 of the whole vector as the layout counts it. For all_gather the
/// input's own block lies `rank` blocks behind `input`, so `input` itself may lie before the buffer.
struct CallBuffers {
  std::uintptr_t input = 0;
  std::uintptr_t result = 0;
  bool input_reachable = false;  ///< peers can address the input: it lies in the own arena
  bool result_reachable = false;
  std::int64_t input_offset = 0;  ///< of byte 0 of the vector in the own arena; may be negative
  std::int64_t result_offset = 0;
  const ExchangeBlocks* blocks = nullptr;  ///< of unequal lengths; must live until the call is done
  /// For each block its distance from its place in the layout, in bytes. nullptr: all blocks are in their places. If
  /// shifts are set, peers cannot access the vector directly. Must live until the call is done.
  const std::int64_t* input_shifts = nullptr;
  const std::int64_t* result_shifts = nullptr;
  /// Equal on all ranks of one call, even, and mixed into the signature: ranks with different salts never take each
  /// other's messages.
  std::uint32_t salt = 0;
  /// The caller's function that combines, which each rank has at an address of its own; nullptr: CallShape::fold does.
  /// Must live until the call is done.
  const kernels::UserFunction* user = nullptr;
  /// For a broadcast whose vector only these functions access. Must live until the call is done.
  const Access* access = nullptr;
};

}  // namespace torii
