// SPDX-License-Identifier: Apache-2.0
// How rings send: signals and credits, stored or put, and the engines that carry them.
#pragma once

#include <cstddef>
#include <cstdint>

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

inline void ReceiveRing::release(RunningCall& call, std::uint64_t message) const noexcept {
  if (place_.sleeping == nullptr) {
    put_credit(call, message);
    return;
  }
  store_word(place_.credit_words + call.slots.of(message) * sizeof(std::uint64_t), message + 1);
  if (place_.sleeping->load(std::memory_order_relaxed) != 0) call.transport.ring(place_.peer);
}

}  // namespace torii
