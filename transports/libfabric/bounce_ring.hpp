// SPDX-License-Identifier: Apache-2.0
// A ring of registered memory in which payloads stand until the provider has read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace torii::libfabric {

/// Pieces are taken in order and may be given back in any order; the room returns in order. Not thread-safe.
class BounceRing {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Piece {
    std::byte* at = nullptr;  ///< nullptr: no room now
    std::uint32_t ticket = kNone;
  };

  /// At most `pieces` are out at a time. Memory is the caller's.
  BounceRing(std::byte* base, std::size_t bytes, std::size_t pieces) : base_(base), bytes_(bytes), pieces_(pieces) {}

  /// The largest piece that an empty ring can give.
  std::size_t bytes() const noexcept { return bytes_; }

  Piece take(std::size_t bytes) noexcept {
    if (last_ - first_ == pieces_.size() || bytes > bytes_) return {};
    std::size_t begin = 0;
    if (last_ != first_) {
      const std::size_t oldest = pieces_[first_ % pieces_.size()].begin;
      begin = pieces_[(last_ - 1) % pieces_.size()].end;
      const bool wrapped = begin <= oldest;
      if (wrapped) {
        if (bytes > oldest - begin) return {};
      } else if (bytes > bytes_ - begin) {
        begin = 0;
        if (bytes > oldest) return {};
      }
    }
    const auto ticket = static_cast<std::uint32_t>(last_ % pieces_.size());
    pieces_[ticket] = {begin, begin + bytes, false};
    ++last_;
    return {base_ + begin, ticket};
  }

  void give_back(std::uint32_t ticket) noexcept {
    pieces_[ticket].free = true;
    while (first_ != last_ && pieces_[first_ % pieces_.size()].free) ++first_;
  }

 private:
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
    bool free = false;
  };

  std::byte* base_;
  std::size_t bytes_;
  std::vector<Range> pieces_;
  std::uint64_t first_ = 0;  ///< the oldest piece that is out
  std::uint64_t last_ = 0;   ///< one behind the youngest
};

}  // namespace torii::libfabric
