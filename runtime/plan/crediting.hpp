// SPDX-License-Identifier: Apache-2.0
// When a slot is free again: the rules of credits. The rings of runtime/execution follow them, and the verifier proves
// that no slot is filled before its last message has been taken.
#pragma once

#include <cstdint>

#include "runtime/plan/plan.hpp"

namespace torii {

/// Streams with as many slots leave it to their engines who carries a message, and time them by the credit of each.
inline constexpr int kSharedSlotsLeast = 32;
/// Groups of slots of a stream whose messages are credited in groups, at most.
inline constexpr int kCreditGroupsMax = 16;

/// How many consecutive messages of a stream to another node share a credit: a power of two that divides the slots.
/// With a message per segment every wait that a group adds looks back at least one segment, so nothing deadlocks.
constexpr int credit_group(const Stream& stream, int slots) noexcept {
  constexpr int kGroupsLeast = 4;  // so that most slots are free while a group fills
  if (stream.messages_per_segment != 1 || slots >= kSharedSlotsLeast) return 1;
  static_assert(kSharedSlotsLeast / 2 <= kCreditGroupsMax, "groups of two are the most that there can be");
  int group = 1;
  while (2 * group * kGroupsLeast <= slots && slots % (2 * group) == 0) group *= 2;
  return group;
}

/// The first message of the group that has to be credited before the slot of `message`, not one of the first, is filled
/// again. The credit is in the word of that message's slot, and says first + group.
constexpr std::uint64_t awaited_group(std::uint64_t message, std::uint64_t slots, std::uint64_t group) noexcept {
  return (message - slots) & ~(group - 1);
}

/// The messages of a call on a stream that are all taken when the credit of the call's last message has been seen:
/// those below this number. The call has the segments from `begun` up to `ended`. A receiver runs call after call, so
/// it has taken all messages of the calls before; of this call it may still need others.
constexpr std::uint64_t taken_before(std::uint64_t begun, std::uint64_t /*ended*/, std::uint64_t messages) noexcept {
  return begun * messages;
}

}  // namespace torii
