// SPDX-License-Identifier: Apache-2.0
// How the bytes of a vector are divided into blocks, and each block into segments. Pure arithmetic, equal on all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace torii {

/// `block`: block b is one contiguous range of `stride` bytes (the last ones may be short or empty).
/// `block_cyclic`: granule g of the vector belongs to block g mod B (docs/design.md, "granule"). So the tree that
/// carries an element, hence its bits, depends on its position only, never on the length of the vector.
enum class Dealing : std::uint8_t { block, block_cyclic };

/// One contiguous range of the vector. Lengths and offsets in bytes of the vector's own type.
struct Piece {
  std::size_t offset_bytes;
  std::size_t length_bytes;
};

/// The granule table: 4 KiB in the first 64 KiB, 16 KiB to 1 MiB, 64 KiB beyond.
struct Granule {
  std::size_t index;
  std::size_t offset_bytes;
  std::size_t length_bytes;
};
Granule granule_at(std::size_t index) noexcept;
/// The granule that holds byte `offset`.
Granule granule_of(std::size_t offset_bytes) noexcept;

class Layout {
 public:
  /// For `block`: `count` blocks in a row share one stride; each is `length_bytes` long, or shorter at the stride's
  /// end.
  struct Parts {
    int count = 1;
    std::size_t length_bytes = 0;  ///< 0: the stride
  };

  Layout() = default;
  /// `total_bytes`: the whole vector. `stride_bytes`: for `block`, the length of a block (0: the least multiple of 128
  /// bytes for which `blocks` blocks hold the vector). `segment_bytes`: at least 64 and a multiple of 64.
  Layout(Dealing dealing, std::size_t total_bytes, int blocks, std::size_t segment_bytes, std::size_t stride_bytes = 0);
  /// The same for contiguous blocks, several of which share each stride.
  Layout(std::size_t total_bytes, int blocks, std::size_t segment_bytes, std::size_t stride_bytes, Parts parts);

  /// Blocks of lengths of their own, one after the other: block b is bytes [offsets[b], offsets[b + 1]). `offsets` has
  /// one element more than there are blocks, begins with 0 and never decreases.
  Layout(std::vector<std::size_t> offsets, std::size_t segment_bytes);

  int blocks() const noexcept { return blocks_; }
  std::size_t total_bytes() const noexcept { return total_bytes_; }
  std::size_t segment_bytes() const noexcept { return segment_bytes_; }
  /// No block is longer.
  std::size_t longest_bytes() const noexcept { return longest_bytes_; }
  /// Segments of the longest block; at least 1, so that an empty vector still has its messages.
  std::int64_t segments() const noexcept { return segments_; }
  /// Bytes of block `block` in segment `segment`; may be 0.
  std::size_t segment_length_bytes(int block, std::int64_t segment) const noexcept;

  /// Calls `visit(Piece, offset within the segment's payload)` for each contiguous range of one segment in order.
  template <typename Visit>
  void for_each_piece(int block, std::int64_t segment, Visit&& visit) const {
    if (dealing_ == Dealing::block || blocks_ == 1) {
      const Piece piece = even_piece(block, segment);
      if (piece.length_bytes != 0) visit(piece, std::size_t{0});
      return;
    }
    const std::size_t length_bytes = segment_length_bytes(block, segment);
    const std::size_t first_bytes = static_cast<std::size_t>(segment) * segment_bytes_;
    for (std::size_t done_bytes = 0; done_bytes < length_bytes;) {
      const Piece piece = cyclic_piece(block, first_bytes + done_bytes, length_bytes - done_bytes);
      visit(piece, done_bytes);
      done_bytes += piece.length_bytes;
    }
  }

  /// The whole segment if it is one contiguous range; otherwise nothing.
  std::optional<Piece> single_piece(int block, std::int64_t segment) const noexcept {
    std::optional<Piece> single;
    int pieces = 0;
    for_each_piece(block, segment, [&](const Piece& piece, std::size_t) {
      if (++pieces == 1) single = piece;
    });
    return pieces == 1 ? single : std::nullopt;
  }

  Piece even_piece(int block, std::int64_t segment) const noexcept;
  /// From the beginning of block `first` to the end of block `last`; the whole vector for `block_cyclic`.
  Piece span(int first, int last) const noexcept;
  /// The block that holds byte `offset` of the vector.
  int block_of(std::size_t offset_bytes) const noexcept;

 private:
  Piece cyclic_piece(int block, std::size_t block_offset_bytes, std::size_t most_bytes) const noexcept;
  std::size_t cyclic_block_bytes(int block) const noexcept;

  Dealing dealing_ = Dealing::block;
  int blocks_ = 1;
  std::size_t total_bytes_ = 0;
  std::size_t segment_bytes_ = 64;
  std::size_t stride_bytes_ = 0;
  Parts parts_;
  std::size_t longest_bytes_ = 0;
  std::int64_t segments_ = 1;
  std::shared_ptr<const std::vector<std::size_t>> offsets_;  ///< of blocks of unequal lengths
};

}  // namespace torii
