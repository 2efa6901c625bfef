// SPDX-License-Identifier: Apache-2.0
// Which parts of an arena fabrics pin, and when they pin more.
#include <algorithm>
#include <string>
#include <utility>

#include "runtime/base/status.hpp"
#include "runtime/devices/memory_limits.hpp"
#include "transports/shared_memory/arena.hpp"

namespace torii::shared_memory {
namespace {

constexpr std::size_t kAlignment = 64 * 1024;
constexpr std::size_t kExtentLeast = std::size_t{2} << 20;

constexpr std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

}  // namespace

std::size_t Arena::pinnable_bytes(int ranks) {
  constexpr std::size_t kMost = std::size_t{1} << 30;
  constexpr std::size_t kPart = 4;  // of the memory that is available
  const std::size_t share = memory_left().bytes / kPart / static_cast<std::size_t>(std::max(ranks, 1));
  return std::clamp(share / kAlignment * kAlignment, kArenaBytesMin, kMost);
}

std::size_t Arena::used_end() const noexcept {
  return used_.empty() ? 0 : used_.rbegin()->first + used_.rbegin()->second;
}

std::vector<Extent> Arena::extents_to_pin(std::size_t most) const {
  const std::lock_guard lock(mutex_);
  if (!extents_.empty()) return extents_;
  return {{0, std::min(round_up(std::max(used_end(), kExtentLeast), kExtentLeast), most)}};
}

std::shared_ptr<const void> Arena::pin(std::size_t most, const std::vector<Extent>& pinned, Pinner pinner) {
  const std::lock_guard lock(mutex_);
  if (pinned.empty() || pinned.back().end() > most || most > bytes_ || most % kAlignment != 0) {
    throw Error(Status::internal,
                "pinning " + std::to_string(most) + " bytes of an arena of " + std::to_string(bytes_));
  }
  if (used_end() > most) {
    throw Error(Status::no_resource, "memory of the arena behind the " + std::to_string(most) +
                                         " bytes that the fabric can pin is in use, by an earlier context; set "
                                         "TORII_ARENA to one size for all contexts and ranks");
  }
  // Another context may have pinned or allocated more meanwhile.
  for (std::size_t i = pinned.size(); i < extents_.size(); ++i) pinner(extents_[i]);
  std::vector<Extent> extents = extents_.empty() ? pinned : extents_;
  if (const std::size_t end = extents.back().end(); used_end() > end) {
    extents.push_back({end, std::min(round_up(used_end() - end, kExtentLeast), most - end)});
    pinner(extents.back());
  }
  extents_ = std::move(extents);
  free_.erase(free_.lower_bound(most), free_.end());
  if (!free_.empty()) {
    auto& [offset, length] = *free_.rbegin();
    length = std::min(length, most - offset);
  }
  pinned_most_ = most;
  const int number = ++last_pinner_;
  pinners_.emplace(number, std::move(pinner));
  return {this, [number](Arena* arena) {
            const std::lock_guard unpin(arena->mutex_);
            arena->pinners_.erase(number);
          }};
}

/// Pins as much again as is pinned, or what `bytes` need; if that is refused, only what they need. Throws
/// Error{no_resource}.
void Arena::pin_more(std::size_t bytes) {
  const std::size_t pinned = extents_.back().end();
  const std::size_t left = pinned_most_ - pinned;
  if (extents_.size() == kExtentsMost || bytes > left) return;
  const std::size_t least = std::min(round_up(bytes, kExtentLeast), left);
  const std::size_t wanted = std::min(std::max(pinned, least), left);
  try {
    pin_next(wanted);
  } catch (const Error&) {
    if (wanted == least) throw;
    pin_next(least);
  }
}

void Arena::pin_next(std::size_t bytes) {
  ask_for(bytes, bytes);
  const Extent extent = {extents_.back().end(), bytes};
  extents_.reserve(extents_.size() + 1);
  // A fabric that has it already when another one refuses keeps it, and pins no less the next time.
  for (const auto& [number, pinner] : pinners_) pinner(extent);
  extents_.push_back(extent);
}

}  // namespace torii::shared_memory
