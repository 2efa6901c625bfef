// SPDX-License-Identifier: Apache-2.0
// Registered memory in pieces that hold payloads until the provider has read them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/fabric/words.hpp"

namespace torii::libfabric {

/// Pieces are given back in any order, and their room is free at once, so a piece that a silent peer keeps blocks
/// nobody. A bit per line says whether the line is taken. Short pieces come from the beginning and long ones from the
/// end: short pieces that stay then do not fragment the room for long ones. Not thread-safe.
class BouncePool {
 public:
  struct Piece {
    std::byte* at = nullptr;  ///< nullptr: no room now
    std::size_t bytes = 0;    ///< at least as many as were asked for
  };

  BouncePool() noexcept = default;
  /// The caller owns the memory. A rest shorter than a line is not used.
  BouncePool(std::byte* base, std::size_t bytes)
      : base_(base), free_bytes_(bytes / kLineBytes * kLineBytes), taken_((bytes / kLineBytes + kLines - 1) / kLines) {
    const std::size_t last = bytes / kLineBytes % kLines;
    if (last != 0) taken_.back() = kAll << last;
    bytes_ = (last == 0 ? taken_.size() : taken_.size() - 1) * kWordBytes;
  }

  /// The largest piece that an empty pool has.
  std::size_t bytes() const noexcept { return bytes_; }
  std::size_t free_bytes() const noexcept { return free_bytes_; }

  /// How much take() takes for so many.
  static std::size_t piece_bytes(std::size_t bytes) noexcept {
    const std::size_t lines = std::max<std::size_t>((bytes + kLineBytes - 1) / kLineBytes, 1);
    return lines <= kShortLines ? lines * kLineBytes : (lines + kLines - 1) / kLines * kWordBytes;
  }

  Piece take(std::size_t bytes) noexcept {
    const std::size_t lines = piece_bytes(bytes) / kLineBytes;
    const Piece piece = lines <= kShortLines ? take_lines(lines) : take_words(lines / kLines);
    free_bytes_ -= piece.bytes;
    return piece;
  }

  void give_back(const Piece& piece) noexcept {
    const std::size_t line = static_cast<std::size_t>(piece.at - base_) / kLineBytes;
    const std::size_t lines = piece.bytes / kLineBytes;
    if (lines <= kShortLines) {
      mark(line, lines, false);
    } else {
      std::fill_n(taken_.begin() + static_cast<std::ptrdiff_t>(line / kLines), lines / kLines, std::uint64_t{0});
    }
    first_ = std::min(first_, line / kLines);
    free_bytes_ += piece.bytes;
  }

 private:
  static constexpr std::size_t kLines = 64;  ///< in a word of bits
  static constexpr std::size_t kWordBytes = kLines * kLineBytes;
  static constexpr std::size_t kShortLines = kLines / 2;
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};

  Piece piece(std::size_t line, std::size_t lines) const noexcept {
    return {base_ + line * kLineBytes, lines * kLineBytes};
  }

  void mark(std::size_t line, std::size_t lines, bool taken) noexcept {
    for (std::size_t i = line; i < line + lines; ++i) {
      const std::uint64_t bit = std::uint64_t{1} << i % kLines;
      taken_[i / kLines] = taken ? taken_[i / kLines] | bit : taken_[i / kLines] & ~bit;
    }
  }

  /// The lowest free lines that are neighbours.
  Piece take_lines(std::size_t lines) noexcept {
    while (first_ < taken_.size() && taken_[first_] == kAll) ++first_;
    std::size_t run = 0;  // free lines before `line`
    for (std::size_t line = first_ * kLines; line < taken_.size() * kLines;) {
      const std::uint64_t rest = taken_[line / kLines] >> line % kLines;
      const std::size_t left = kLines - line % kLines;
      const std::size_t free = std::min<std::size_t>(static_cast<std::size_t>(std::countr_zero(rest)), left);
      if (run + free >= lines) {
        const std::size_t begin = line - run;
        mark(begin, lines, true);
        return piece(begin, lines);
      }
      run = free == left ? run + free : 0;
      line += free;
      if (free == left) continue;
      line += std::min<std::size_t>(static_cast<std::size_t>(std::countr_one(rest >> free)), left - free);
    }
    return {};
  }

  /// The highest free whole words that are neighbours.
  Piece take_words(std::size_t words) noexcept {
    std::size_t run = 0;
    for (std::size_t word = taken_.size(); word-- > 0;) {
      run = taken_[word] == 0 ? run + 1 : 0;
      if (run < words) continue;
      std::fill_n(taken_.begin() + static_cast<std::ptrdiff_t>(word), words, kAll);
      return piece(word * kLines, words * kLines);
    }
    return {};
  }

  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t free_bytes_ = 0;
  std::size_t first_ = 0;  ///< all words before this one are taken
  std::vector<std::uint64_t> taken_;
};

}  // namespace torii::libfabric
