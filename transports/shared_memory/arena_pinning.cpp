// SPDX-License-Identifier: Apache-2.0
// Which parts of an arena fabrics pin, and when they pin more.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "runtime/base/status.hpp"
#include "runtime/devices/memory_limits.hpp"
#include "transports/shared_memory/arena.hpp"

namespace torii::shared_memory {
namespace {

constexpr std::size_t kPinnedAlignment = 64 * 1024;
constexpr std::size_t kExtentLeast = std::size_t{2} << 20;

constexpr std::size_t whole_extents(std::size_t bytes) {
  return (bytes + kExtentLeast - 1) / kExtentLeast * kExtentLeast;
}

}  // namespace

std::size_t Arena::pinnable_bytes(int ranks) {
  constexpr std::size_t kMost = std::size_t{1} << 30;
  constexpr std::size_t kPart = 4;  // of the memory that is available
  const std::size_t share = memory_left().bytes / kPart / static_cast<std::size_t>(std::max(ranks, 1));
  return std::clamp(share / kPinnedAlignment * kPinnedAlignment, kArenaBytesMin, kMost);
}

std::size_t Arena::used_end() const noexcept {
  return used_.empty() ? 0 : used_.rbegin()->first + used_.rbegin()->second;
}

/// A fabric pins these extents, though the arena is not pinned yet. Made before the lock is taken, so that nothing can
/// fail under it.
struct Arena::Keeping {
  ~Keeping() {
    if (arena == nullptr) return;
    const std::lock_guard lock(arena->mutex_);
    --arena->keepers_;
  }
  Arena* arena = nullptr;
  std::vector<Extent> extents;
};

struct Arena::Unpinning {
  ~Unpinning() {
    if (arena == nullptr) return;
    const std::lock_guard lock(arena->mutex_);
    arena->pinners_.erase(number);
  }
  Arena* arena = nullptr;
  int number = 0;
};

std::shared_ptr<const std::vector<Extent>> Arena::extents_to_pin(std::size_t most) {
  const auto keeping = std::make_shared<Keeping>();
  const std::lock_guard lock(mutex_);
  keeping->extents = extents_;
  if (extents_.empty()) {
    keeping->extents.push_back({0, std::min(whole_extents(std::max(used_end(), kExtentLeast)), most)});
  }
  keeping->arena = this;
  ++keepers_;
  return {keeping, &keeping->extents};
}

/// Contexts may be made at once, so another one may have pinned or allocated more since this one asked.
std::shared_ptr<const void> Arena::pin(std::size_t most, const std::vector<Extent>& pinned, Pinner pinner) {
  const auto unpinning = std::make_shared<Unpinning>();
  const std::lock_guard lock(mutex_);
  if (pinned.empty() || most == 0 || most > bytes_ || most % kPinnedAlignment != 0) {
    throw Error(Status::internal,
                "pinning " + std::to_string(most) + " bytes of an arena of " + std::to_string(bytes_));
  }
  if (is_pinned()) most = std::min(most, pinned_most_.load());
  if (used_end() > most) {
    throw Error(Status::no_resource, "memory of the arena behind the " + std::to_string(most) +
                                         " bytes that the fabric can pin is in use, by an earlier context; set "
                                         "TORII_ARENA to one size for all contexts and ranks");
  }
  std::vector<Extent> extents = extents_.empty() ? pinned : extents_;
  if (used_end() > extents.back().end()) extents = {{0, whole_extents(used_end())}};
  std::erase_if(extents, [most](const Extent& one) { return one.offset >= most; });
  extents.back().bytes = std::min(extents.back().bytes, most - extents.back().offset);
  for (const Extent& one : extents) {
    populate(one.offset, one.bytes);
    const auto holds_it = [&one](const Extent& has) { return has.holds(one.offset, one.bytes); };
    if (std::ranges::none_of(pinned, holds_it)) pinner(one);
  }
  unpinning->number = ++last_pinner_;
  pinners_.emplace(unpinning->number, std::move(pinner));
  unpinning->arena = this;
  extents_ = std::move(extents);
  free_.erase(free_.lower_bound(most), free_.end());
  if (!free_.empty()) {
    auto& [offset, length] = *free_.rbegin();
    length = std::min(length, most - offset);
  }
  pinned_most_ = most;
  return unpinning;
}

/// Pins as much again as is pinned, or what `bytes` need; if that is refused, only what they need. Throws
/// Error{no_resource}.
void Arena::pin_more(std::size_t bytes) {
  const std::size_t pinned = extents_.back().end();
  const std::size_t left = pinned_most_ - pinned;
  if (extents_.size() == kExtentsMost || bytes > left) return;
  const std::size_t least = std::min(whole_extents(bytes), left);
  const std::size_t wanted = std::min(std::max(pinned, least), left);
  try {
    pin_next(wanted);
  } catch (const Error&) {
    if (wanted == least) throw;
    pin_next(least);
  }
}

/// A fabric that has the extent already when another one refuses it keeps it, and its pages stay.
void Arena::pin_next(std::size_t bytes) {
  const Extent extent = {extents_.back().end(), bytes};
  extents_.reserve(extents_.size() + 1);
  populate(extent.offset, extent.bytes);
  bool stays = false;
  try {
    for (const auto& [number, pinner] : pinners_) {
      pinner(extent);
      stays = true;
    }
  } catch (...) {
    if (!stays) punch(extent.offset, extent.bytes);
    throw;
  }
  extents_.push_back(extent);
}

}  // namespace torii::shared_memory
