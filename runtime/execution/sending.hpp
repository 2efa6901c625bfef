// SPDX-License-Identifier: Apache-2.0
// How rings send: signals and credits, stored or put, and the engines that carry them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/base/tuned_constants.hpp"
#include "runtime/execution/running_call.hpp"

namespace torii {

/// Slots from the one that is being filled to the one whose lines are claimed.
inline constexpr auto kClaimedAhead = tuned<std::uint64_t>("stores.claimed_ahead");

inline void SendRing::signal(RunningCall& call, std::uint32_t signature, std::uint64_t message, std::size_t bytes,
                             const std::byte* from) const noexcept {
  const std::uint64_t word = signal_word(signature, message);
  if (place_.sleeping == nullptr) {
    put(call, word, message, bytes, from);
    return;
  }
  store_word(place_.slots + offset(call.slots, message), word);
  if (place_.sleeping->load(std::memory_order_relaxed) != 0) call.transport.ring(place_.peer);
  if (claims_) claim(call.slots, message + kClaimedAhead, bytes);
  call.engines.rotate(bytes);
}

inline void SendRing::signal_entry(RunningCall& call, std::uint32_t signature, std::uint64_t message,
                                   std::size_t bytes) const noexcept {
  const std::uint64_t word = signal_word(signature, message);
  std::byte* const entry = place_.slots + offset(call.slots, message);
  if (!is_inline(bytes)) {
    const std::uint64_t at = call.plan->rings->outbox_offset() + payload_offset(call.on_rings.payload_slots, message);
    std::memcpy(entry + sizeof(word), &at, sizeof(at));
  }
  store_word(entry, word);
  if (standing_->is_asleep()) call.transport.ring(place_.peer);
  call.engines.rotate(bytes);
}

inline void ReceiveRing::take(RunningCall& call, std::uint64_t message) const noexcept {
  end().take(message);
  end().publish(call.on_rings.publish_every, call.transport);
}

inline void ReceiveRing::release(RunningCall& call, std::uint64_t message) const noexcept {
  if (place_.sleeping == nullptr) {
    put_credit(call, message);
    return;
  }
  store_word(place_.credit_words + call.slots.of(message) * sizeof(std::uint64_t), message + 1);
  if (place_.sleeping->load(std::memory_order_relaxed) != 0) call.transport.ring(place_.peer);
}

}  // namespace torii
