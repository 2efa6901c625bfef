// SPDX-License-Identifier: Apache-2.0
// The payloads of a channel's calls that are longer than a line. They stay in the sender's arena, where their receivers
// read them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/base/tuned_constants.hpp"
#include "runtime/rings/ring_ends.hpp"

namespace torii {

/// Calls use at least so much of an outbox before they wait for readers.
inline constexpr auto kOutboxAheadBytes = tuned<std::size_t>("outbox.ahead_bytes");

/// A call takes one extent as it begins, or none: so nobody holds a part and waits for another one. Extents become free
/// in the order of calls, each when the counts of all its readers have come to the call's last messages. One without
/// readers is free when its call has ended.
class Outbox {
 public:
  Outbox() = default;
  explicit Outbox(std::size_t bytes) : bytes_(bytes) {}

  std::size_t bytes() const noexcept { return bytes_; }
  /// So much of it, from its beginning, has been claimed, or has pages for another reason.
  std::size_t touched_bytes() const noexcept { return touched_bytes_; }
  void note_touched(std::size_t bytes) noexcept { touched_bytes_ = std::max(touched_bytes_, bytes); }
  /// Calls whose extents have so many bytes are about to come. Returns by how much more of the outbox, from its
  /// beginning, calls may use now.
  std::size_t reach_for(std::size_t bytes) noexcept;
  /// Other memory takes its place, of so many bytes. Payloads that are still to be read stay in the old one.
  void move_to(std::size_t bytes) noexcept;
  /// From now on a call may have so many readers. Throws std::bad_alloc.
  void allow_readers(std::size_t readers);

  /// The offset of an extent for the next call; nothing if there is no room yet. `bytes` is at most bytes(), and the
  /// `readers` that are to be added at most as many as were allowed.
  std::optional<std::size_t> claim(std::size_t bytes, std::size_t readers) noexcept {
    const std::size_t behind_newest = next_;
    if (!has_room(bytes, readers)) [[unlikely]] {
      look(bytes);
      if (!has_room(bytes, readers)) return {};
    }
    const std::size_t begin = next_;
    touched_bytes_ = std::max(touched_bytes_, begin + bytes);
    if (readers == 0) {
      // Nobody needs it when the call has ended, so the next one begins where this one would have begun.
      if (extents_first_ != extents_end_ && begin != behind_newest) next_ = limit_ = behind_newest;
      return begin;
    }
    next_ += bytes;
    extents_[index(extents_end_++)] = {begin, readers_end_ + readers};
    return begin;
  }
  /// The receiver of that ring reads the extent until it has taken all messages below `number`.
  void add_reader(SendEnd& ring, std::uint64_t number) noexcept { reader(readers_end_++) = {&ring, number}; }
  /// The receiver of that ring reads an extent until it has taken all messages below `number`.
  struct Reader {
    SendEnd* ring = nullptr;
    std::uint64_t number = 0;
  };
  /// Who has to read the oldest extent; a ring of nullptr if nobody has to.
  Reader awaited() const noexcept;

 private:
  static constexpr std::size_t kExtents = 256;
  struct Extent {
    std::size_t begin = 0;
    std::uint64_t readers_end = 0;  ///< readers are numbered; this extent's are those below
  };
  static std::size_t index(std::uint64_t extent) noexcept { return extent % kExtents; }
  std::size_t reach(std::size_t bytes) const noexcept;
  Reader& reader(std::uint64_t number) noexcept { return readers_[number & (readers_room_ - 1)]; }
  const Reader& reader(std::uint64_t number) const noexcept { return readers_[number & (readers_room_ - 1)]; }

  bool has_room(std::size_t bytes, std::size_t readers) const noexcept {
    return next_ + bytes <= limit_ && extents_end_ - extents_first_ < kExtents &&
           readers_end_ - readers_first_ + readers <= readers_room_;
  }
  void free_oldest() noexcept;
  void look(std::size_t bytes) noexcept;

  std::size_t bytes_ = 0;
  std::size_t next_ = 0;   ///< where the next extent begins
  std::size_t limit_ = 0;  ///< up to here extents are claimed before the next look
  std::size_t touched_bytes_ = 0;
  std::size_t reach_bytes_ = 0;  ///< no extent so far could end behind it
  std::vector<Extent> extents_;  ///< those from extents_first_ to extents_end_, modulo their number
  std::uint64_t extents_first_ = 0;
  std::uint64_t extents_end_ = 0;
  std::vector<Reader> readers_;      ///< of all extents, modulo their number
  std::uint64_t readers_room_ = 0;   ///< that number, a power of two or 0
  std::uint64_t readers_first_ = 0;  ///< the first one that is not known to have read
  std::uint64_t readers_end_ = 0;
  std::size_t readers_most_ = 0;
};

}  // namespace torii
