// SPDX-License-Identifier: Apache-2.0
// Claims and frees extents.
#include "runtime/rings/outbox.hpp"

#include <bit>
#include <utility>

#include "runtime/base/tuned_constants.hpp"

namespace torii {

void Outbox::move_to(std::size_t bytes) noexcept {
  bytes_ = bytes;
  next_ = limit_ = touched_bytes_ = reach_bytes_ = 0;
  extents_first_ = extents_end_;
  readers_first_ = readers_end_;
}

void Outbox::allow_readers(std::size_t readers) {
  constexpr std::size_t kCallsAhead = 64;
  if (readers <= readers_most_) return;
  std::vector<Reader> more(std::bit_ceil(kCallsAhead * readers));
  for (std::uint64_t one = readers_first_; one < readers_end_; ++one) more[one & (more.size() - 1)] = reader(one);
  readers_ = std::move(more);
  readers_room_ = readers_.size();
  extents_.resize(kExtents);
  readers_most_ = readers;
}

void Outbox::free_oldest() noexcept {
  while (extents_first_ != extents_end_) {
    const std::uint64_t end = extents_[index(extents_first_)].readers_end;
    for (; readers_first_ != end; ++readers_first_) {
      const Reader& first = reader(readers_first_);
      if (!first.ring->is_taken_below(first.number)) return;
    }
    ++extents_first_;
  }
}

/// Calls run ahead of their readers in a part of the outbox: two long ones, or many short ones. More would only touch
/// new pages and leave the caches.
std::size_t Outbox::reach(std::size_t bytes) const noexcept {
  return std::min(bytes_, std::max(2 * bytes, kOutboxAheadBytes));
}

std::size_t Outbox::reach_for(std::size_t bytes) noexcept {
  const std::size_t before = reach_bytes_;
  reach_bytes_ = std::max(before, reach(bytes));
  return reach_bytes_ - before;
}

/// Looking at counts costs the lines to which readers write them, so it happens once in several short claims, and for
/// each long one.
void Outbox::look(std::size_t bytes) noexcept {
  constexpr auto kBytesPerLook = tuned<std::size_t>("outbox.bytes_per_look");
  free_oldest();
  std::size_t end = reach(bytes);
  if (extents_first_ == extents_end_) {
    next_ = 0;
  } else if (const std::size_t oldest = extents_[index(extents_first_)].begin; oldest >= next_) {
    end = oldest;  // the newest extents are below the oldest
  } else if (next_ + bytes > end) {
    if (oldest >= bytes) next_ = 0;
    end = oldest >= bytes ? oldest : next_;
  }
  limit_ = std::min(end, next_ + std::max(bytes, kBytesPerLook));
}

Outbox::Reader Outbox::awaited() const noexcept {
  return extents_first_ == extents_end_ ? Reader{} : reader(readers_first_);
}

}  // namespace torii
