// SPDX-License-Identifier: Apache-2.0
// Copies between orders of dimensions, a tile at a time.
#include "runtime/plan/transposition.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "runtime/base/status.hpp"

namespace torii {
namespace {

constexpr std::size_t kMostBytes = std::numeric_limits<std::ptrdiff_t>::max() / 2;

/// The two dimensions of which one is the fastest of the input and the other one of the output. Strides in elements.
struct Plane {
  std::size_t rows;           ///< of the input: the output's fastest dimension
  std::size_t columns;        ///< of the input, one behind the other
  std::size_t row_stride;     ///< in the input
  std::size_t column_stride;  ///< in the output
};

/// Elements along a side of a tile: 8 KiB at most. The tile is read row by row into memory of its own and written from
/// there. Rows of a large matrix are often a power of two apart and would push each other out of the caches.
constexpr std::size_t tile_side(std::size_t element_bytes) {
  return element_bytes <= 2 ? 64 : element_bytes <= 8 ? 32 : 16;
}

template <std::size_t kBytes>
void transpose_plane(const Plane& plane, const std::byte* input, std::byte* output) {
  constexpr std::size_t kSide = tile_side(kBytes);
  alignas(64) std::byte tile[kSide * kSide * kBytes];
  for (std::size_t column = 0; column < plane.columns; column += kSide) {
    const std::size_t wide = std::min(kSide, plane.columns - column);
    for (std::size_t row = 0; row < plane.rows; row += kSide) {
      const std::size_t high = std::min(kSide, plane.rows - row);
      for (std::size_t i = 0; i < high; ++i) {
        std::memcpy(tile + i * kSide * kBytes, input + ((row + i) * plane.row_stride + column) * kBytes, wide * kBytes);
      }
      for (std::size_t j = 0; j < wide; ++j) {
        std::byte* out = output + ((column + j) * plane.column_stride + row) * kBytes;
        for (std::size_t i = 0; i < high; ++i) {
          std::memcpy(out + i * kBytes, tile + (i * kSide + j) * kBytes, kBytes);
        }
      }
    }
  }
}

using TransposePlane = void (*)(const Plane&, const std::byte*, std::byte*);

template <std::size_t... kIndex>
constexpr std::array<TransposePlane, sizeof...(kIndex)> planes_of(std::index_sequence<kIndex...>) {
  return {transpose_plane<kIndex + 1>...};
}
constexpr auto kTransposePlane = planes_of(std::make_index_sequence<Transposition::kElementBytesMax>());

using Sizes = std::array<std::size_t, Transposition::kDimensionsMax>;

/// Calls `visit(input offset, output offset)`, in elements, for every index of the dimensions but those in `left_out`.
template <typename Visit>
void for_each_index(int dimensions, const Sizes& extents, const Sizes& input_strides, const Sizes& output_strides,
                    std::pair<int, int> left_out, Visit&& visit) {
  Sizes index = {};
  std::size_t input = 0;
  std::size_t output = 0;
  for (;;) {
    visit(input, output);
    int d = dimensions - 1;
    for (; d >= 0; --d) {
      if (d == left_out.first || d == left_out.second) continue;
      const auto at = static_cast<std::size_t>(d);
      input += input_strides[at];
      output += output_strides[at];
      if (++index[at] < extents[at]) break;
      input -= input_strides[at] * extents[at];
      output -= output_strides[at] * extents[at];
      index[at] = 0;
    }
    if (d < 0) return;
  }
}

}  // namespace

Transposition::Transposition(std::span<const std::size_t> extents, std::span<const int> axes, std::size_t element_bytes,
                             int ranks, int rank)
    : dimensions_(static_cast<int>(extents.size())), ranks_(ranks), rank_(rank), element_bytes_(element_bytes) {
  if (dimensions_ < 1 || dimensions_ > kDimensionsMax) {
    invalid("dimensions is " + std::to_string(dimensions_) + "; it must be from 1 to " +
            std::to_string(kDimensionsMax));
  }
  if (element_bytes < 1 || element_bytes > kElementBytesMax) {
    invalid("element_bytes is " + std::to_string(element_bytes) + "; it must be from 1 to " +
            std::to_string(kElementBytesMax));
  }
  std::uint64_t digest = element_bytes;
  bool is_empty = false;
  std::size_t bytes = element_bytes;
  unsigned seen = 0;
  for (int d = 0; d < dimensions_; ++d) {
    const auto at = static_cast<std::size_t>(d);
    const int axis = axes[at];
    if (axis < 0 || axis >= dimensions_ || (seen >> axis & 1) != 0) {
      invalid("axes[" + std::to_string(d) + "] is " + std::to_string(axis) + "; axes must hold each number from 0 to " +
              std::to_string(dimensions_ - 1) + " once");
    }
    seen |= 1U << axis;
    axes_[at] = axis;
    extents_[at] = extents[at];
    if (axis == 0) place_of_first_ = d;
    is_empty = is_empty || extents[at] == 0;
    digest =
        (digest ^ (extents[at] + 0x9e3779b97f4a7c15ULL * static_cast<std::uint64_t>(axis + 1))) * 0xbf58476d1ce4e5b9ULL;
    digest ^= digest >> 29;
  }
  for (int d = 0; d < dimensions_ && !is_empty; ++d) {
    const std::size_t extent = extents[static_cast<std::size_t>(d)];
    if (extent > kMostBytes / bytes) {
      invalid("extents[" + std::to_string(d) + "] is " + std::to_string(extent) +
              ", with which the array has more than " + std::to_string(kMostBytes) + " bytes");
    }
    bytes *= extent;
  }
  digest_ = static_cast<std::uint32_t>(digest >> 32) | 1;
  if (is_empty) {
    extents_.fill(0);
    return;
  }
  own_ = balanced_split(extents_[0], ranks, rank);
  row_bytes_ = bytes / extents_[0];
  const std::size_t first_extent = extents_[static_cast<std::size_t>(axes_[0])];
  take_bytes_ = bytes / first_extent * balanced_split(first_extent, ranks, rank).count;
}

std::size_t Transposition::send_bytes(int to) const {
  if (extents_[0] == 0) return 0;
  if (is_local()) return to == rank_ ? input_bytes() : 0;
  const std::size_t extent = extents_[static_cast<std::size_t>(axes_[0])];
  return input_bytes() / extent * balanced_split(extent, ranks_, to).count;
}

std::size_t Transposition::take_bytes(int from) const {
  if (extents_[0] == 0) return 0;
  if (is_local()) return from == rank_ ? input_bytes() : 0;
  return take_bytes_ / extents_[0] * balanced_split(extents_[0], ranks_, from).count;
}

bool Transposition::is_even() const {
  const auto ranks = static_cast<std::size_t>(ranks_);
  return extents_[0] % ranks == 0 && extents_[static_cast<std::size_t>(axes_[0])] % ranks == 0;
}

void Transposition::pack(const std::byte* input, int to, std::byte* block) const {
  if (send_bytes(to) == 0) return;
  Sizes strides = {};
  std::size_t stride = 1;
  for (int d = dimensions_ - 1; d >= 0; --d) {
    strides[static_cast<std::size_t>(d)] = stride;
    stride *= extents_[static_cast<std::size_t>(d)];
  }
  Sizes extents = {};
  Sizes input_strides = {};
  Sizes output_strides = {};
  int fastest = 0;
  stride = 1;
  for (int d = dimensions_ - 1; d >= 0; --d) {
    const auto at = static_cast<std::size_t>(d);
    const auto axis = static_cast<std::size_t>(axes_[at]);
    extents[at] = axis == 0 ? own_.count : extents_[axis];
    if (d == 0 && !is_local()) {
      const ItemRange theirs = balanced_split(extents_[axis], ranks_, to);
      extents[at] = theirs.count;
      input += theirs.first * strides[axis] * element_bytes_;
    }
    input_strides[at] = strides[axis];
    output_strides[at] = stride;
    stride *= extents[at];
    if (axis + 1 == static_cast<std::size_t>(dimensions_)) fastest = d;
  }
  const int last = dimensions_ - 1;
  const auto inner = static_cast<std::size_t>(last);
  const Plane plane = {extents[inner], extents[static_cast<std::size_t>(fastest)], input_strides[inner],
                       output_strides[static_cast<std::size_t>(fastest)]};
  const TransposePlane transpose = kTransposePlane[element_bytes_ - 1];
  for_each_index(dimensions_, extents, input_strides, output_strides, {fastest, last},
                 [&](std::size_t from, std::size_t at) {
                   const std::byte* source = input + from * element_bytes_;
                   std::byte* target = block + at * element_bytes_;
                   if (fastest == last) {
                     std::memcpy(target, source, extents[inner] * element_bytes_);
                   } else {
                     transpose(plane, source, target);
                   }
                 });
}

void Transposition::unpack(const std::byte* block, int from, std::byte* result) const {
  const std::size_t bytes = take_bytes(from);
  if (bytes == 0) return;
  if (is_local()) {
    std::memcpy(result, block, bytes);
    return;
  }
  std::size_t inner_bytes = element_bytes_;
  for (int d = place_of_first_ + 1; d < dimensions_; ++d) {
    inner_bytes *= extents_[static_cast<std::size_t>(axes_[static_cast<std::size_t>(d)])];
  }
  const ItemRange theirs = balanced_split(extents_[0], ranks_, from);
  const std::size_t run_bytes = theirs.count * inner_bytes;
  std::byte* to = result + theirs.first * inner_bytes;
  for (std::size_t done = 0; done < bytes; done += run_bytes, to += extents_[0] * inner_bytes) {
    std::memcpy(to, block + done, run_bytes);
  }
}

}  // namespace torii
