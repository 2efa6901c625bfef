// SPDX-License-Identifier: Apache-2.0
// Divides the memory for payloads, and stores and reads the words of two ranks of one node.
#include "runtime/point_to_point/messages.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

namespace torii {
namespace {

constexpr std::size_t kPayloadsBytesMost = std::size_t{1} << 20;
/// A line for the heading, so that sends of a power of two go whole.
constexpr std::size_t kPayloadBytesMost = 16384 + kLineBytes;

constexpr std::size_t kWithdrawnAt = 0;
constexpr std::size_t kReadsAt = sizeof(std::uint64_t);

std::atomic_ref<std::uint64_t> word_at(const std::byte* words, std::size_t offset) noexcept {
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(words) + offset));
}

}  // namespace

std::size_t pair_place_bytes(int ranks) noexcept {
  const std::size_t share = kPayloadsBytesMost / (static_cast<std::size_t>(ranks) * kPairPayloads);
  return std::clamp(share / kLineBytes * kLineBytes, kLineBytes, kPayloadBytesMost);
}

/// As in a sequence lock: who has read a byte that was changed after the word was stored finds the word. The fence here
/// keeps the caller's stores behind it, that of has_peer_withdrawn() the loads of the bytes before it.
void PairWords::withdraw_announcements() noexcept {
  if (theirs_ == nullptr) return;
  word_at(theirs_, kWithdrawnAt).store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

bool PairWords::has_peer_withdrawn() const noexcept {
  std::atomic_thread_fence(std::memory_order_acquire);
  return word_at(own_, kWithdrawnAt).load(std::memory_order_relaxed) != 0;
}

/// Relaxed: the words order nothing, they only show that something goes on.
void PairWords::tell_reading() noexcept { word_at(theirs_, kReadsAt).store(++reads_told_, std::memory_order_relaxed); }

bool PairWords::is_peer_reading() noexcept {
  if (own_ == nullptr) return false;
  const std::uint64_t reads = word_at(own_, kReadsAt).load(std::memory_order_relaxed);
  return std::exchange(reads_seen_, reads) != reads;
}

}  // namespace torii
