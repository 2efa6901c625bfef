// SPDX-License-Identifier: Apache-2.0
// Arrays that are distributed over ranks by their first dimension, and what moves when their dimensions change places.
// Pure arithmetic and copies within one rank.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/plan/balanced_split.hpp"

namespace torii {

/// One rank's part in changing the order of an array's dimensions. The array has `extents`, the last dimension is the
/// fastest, and rank r has the balanced split of dimension 0. Dimension d of the result is dimension axes[d] of the
/// input, and the result is distributed by its own dimension 0. A matrix has axes {1, 0}.
///
/// The block that rank i has for rank j travels in the order of the result. So the sender transposes, tile by tile, and
/// the receiver puts whole rows in their places.
class Transposition {
 public:
  static constexpr int kDimensionsMax = 8;
  static constexpr std::size_t kElementBytesMax = 16;

  /// Throws Error{invalid_argument} naming the extent, axis or size that is wrong and what would be right. An extent
  /// may be 0: then nothing moves.
  Transposition(std::span<const std::size_t> extents, std::span<const int> axes, std::size_t element_bytes, int ranks,
                int rank);

  /// Dimension 0 keeps its place: no data goes to another rank.
  bool is_local() const { return place_of_first_ == 0; }
  std::size_t input_bytes() const { return own_.count * row_bytes_; }
  std::size_t result_bytes() const { return take_bytes_; }
  std::size_t send_bytes(int to) const;
  std::size_t take_bytes(int from) const;
  /// All blocks are equally long.
  bool is_even() const;
  /// A digest of everything that has to be the same on all ranks.
  std::uint32_t digest() const { return digest_; }

  /// Writes the block for `to`, send_bytes(to) long. If is_local(), the rank's own block is its whole result.
  void pack(const std::byte* input, int to, std::byte* block) const;
  /// Puts the block of `from` in its place.
  void unpack(const std::byte* block, int from, std::byte* result) const;

 private:
  int dimensions_;
  int ranks_;
  int rank_;
  std::size_t element_bytes_;
  std::array<std::size_t, kDimensionsMax> extents_ = {};  ///< of the input
  std::array<int, kDimensionsMax> axes_ = {};
  int place_of_first_ = 0;  ///< where dimension 0 of the input is in the result
  ItemRange own_;           ///< of the input's dimension 0
  std::size_t row_bytes_ = 0;
  std::size_t take_bytes_ = 0;
  std::uint32_t digest_ = 0;
};

}  // namespace torii
