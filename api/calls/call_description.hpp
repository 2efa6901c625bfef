// SPDX-License-Identifier: Apache-2.0
// One call of a user: what is equal on all ranks, its memory, and what else this rank alone knows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "api/calls/call_spec.hpp"
#include "reduce_kernels/kernels.hpp"
#include "runtime/plan/call.hpp"
#include "runtime/plan/leaves.hpp"

namespace torii {

struct CallMemory {
  const void* input = nullptr;
  void* result = nullptr;  ///< a broadcast's vector
};

/// Blocks that have lengths of their own. The arrays are read once, by read_blocks().
struct BlockArrays {
  const std::size_t* input_counts = nullptr;  ///< of a reduce_scatter: that of each rank's block
  const std::size_t* input_displacements = nullptr;
  const std::size_t* result_counts = nullptr;
  const std::size_t* result_displacements = nullptr;
  /// Addresses of the blocks, in place of `input` and `result` with displacements. Without counts every block has
  /// `count` elements.
  const void* const* input_blocks = nullptr;
  void* const* result_blocks = nullptr;
  std::size_t count = 0;  ///< elements of the one block that this rank has itself: of a gather its input
};

/// The caller's function for leaves that come one by one: writes the vector of a leaf to `out`, and returns 0 if it
/// could.
struct LeafFunction {
  int (*write)(std::size_t leaf, void* out, void* data) = nullptr;
  void* data = nullptr;
};

/// The leaves of all ranks, and where those of this rank are.
struct LeafSource {
  const LeafIntervals* intervals = nullptr;  ///< that Team::agree_on_leaves() has
  std::size_t stride = 0;                    ///< elements from one leaf in `input` to the next
  LeafFunction function = {};                ///< writes the leaves; `input` is then not looked at
};

/// One element, by which the input is multiplied before the call.
using Factor = std::array<std::byte, 16>;

/// Equal calls of two ranks may differ in all of this.
struct CallExtras {
  /// Most calls have none: what the variants would hold is not filled with zeros for them.
  CallExtras() noexcept {}
  std::variant<std::monostate, kernels::UserFunction, Factor> arithmetic;
  std::variant<std::monostate, BlockArrays, LeafSource, Access> vectors;
  std::int64_t timeout_ns = 0;  ///< how long the call may wait without progress; 0: the team's time
};

struct CallDescription {
  CallSpec spec;
  CallMemory memory;
  CallExtras extras;

  const kernels::UserFunction* user() const noexcept { return std::get_if<kernels::UserFunction>(&extras.arithmetic); }
  const Factor* factor() const noexcept { return std::get_if<Factor>(&extras.arithmetic); }
  const BlockArrays* blocks() const noexcept { return std::get_if<BlockArrays>(&extras.vectors); }
  const LeafSource* leaves() const noexcept { return std::get_if<LeafSource>(&extras.vectors); }
  const Access* access() const noexcept { return std::get_if<Access>(&extras.vectors); }
  const LeafIntervals* intervals() const noexcept { return leaves() == nullptr ? nullptr : leaves()->intervals; }
  /// Whether functions of the caller's give the vectors.
  bool has_functions() const noexcept {
    return access() != nullptr || (leaves() != nullptr && leaves()->function.write != nullptr);
  }
  /// Whether a user's operation has no function.
  bool lacks_function() const noexcept {
    return spec.op == OpNumber::user && (user() == nullptr || user()->call == nullptr);
  }
  /// reduce_scatter with blocks of unequal lengths: those of all ranks; otherwise nullptr.
  const std::size_t* block_counts() const noexcept {
    return spec.has(CallMark::block_counts) ? blocks()->input_counts : nullptr;
  }
  void set_blocks(const BlockArrays& arrays) noexcept {
    spec.set(CallMark::unequal);
    extras.vectors = arrays;
  }
  /// The lengths are still to be read, by take_blocks().
  void set_block_counts(const std::size_t* counts) noexcept {
    spec.set(CallMark::block_counts);
    extras.vectors = BlockArrays{.input_counts = counts};
  }
  void set_leaves(const LeafSource& source) noexcept {
    spec.set(CallMark::leaves);
    if (source.intervals->is_one_each()) spec.set(CallMark::one_leaf_each);
    spec.content = source.intervals->digest();
    extras.vectors = source;
  }
};

/// A call of the library's own, of bytes.
inline CallDescription internal_call(Collective collective, const void* input, void* result) noexcept {
  CallDescription call;
  call.spec.collective = collective;
  call.spec.set(CallMark::internal);
  call.memory = {input, result};
  return call;
}

/// Whether a deadline may have so many seconds. 0 stands for another deadline.
inline bool is_timeout(double seconds) noexcept { return seconds >= 0 && seconds <= 1e6; }
inline std::int64_t timeout_ns_of(double seconds) noexcept { return static_cast<std::int64_t>(seconds * 1e9); }
/// The fault of a number of seconds that is no deadline, as text.
std::string timeout_text(double seconds, const std::string& otherwise);

}  // namespace torii
