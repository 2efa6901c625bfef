// SPDX-License-Identifier: Apache-2.0
// How rings send within a node: signals and counts are stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/execution/running_call.hpp"

namespace torii {

inline void SendRing::signal_entry(RunningCall& call, std::uint32_t signature, std::uint64_t message,
                                   std::size_t bytes) const noexcept {
  const std::uint64_t word = signal_word(signature, message);
  std::byte* const entry = place_.entries + offset(call.entries, message);
  if (!is_inline(bytes)) {
    const std::uint64_t at = call.plan->rings->outbox_offset() + payload_offset(call.on_rings.places, message);
    std::memcpy(entry + sizeof(word), &at, sizeof(at));
  }
  store_word(entry, word);
  if (end_->is_asleep()) call.transport.ring(place_.peer);
  call.engines.rotate(bytes);
}

inline void ReceiveRing::take(RunningCall& call, std::uint64_t message) const noexcept {
  end().take(message);
  end().publish(call.on_rings.publish_every, call.transport);
}

}  // namespace torii
