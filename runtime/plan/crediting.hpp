// SPDX-License-Identifier: Apache-2.0
// When a slot is free again: the rules of credits. Rings between nodes follow credited_group() and awaited_group(); the
// others are about slots of one plan, and only proofs know them (ExecutorRules).
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/tuned_constants.hpp"
#include "runtime/plan/plan.hpp"

namespace torii {

/// Streams with at least so many slots balance their messages over engines, which are timed by each message's credit.
inline constexpr auto kSharedSlotsLeast = tuned<int>("engines.shared_slots_min");
/// The largest number of groups into which the slots of a stream are divided.
inline constexpr int kCreditGroupsMax = 16;

/// How many consecutive messages of a stream to another node share a credit: a power of two that divides the slots.
/// With one message per segment a group only adds waits for an earlier segment, so nothing deadlocks.
constexpr int credit_group(const Stream& stream, int slots) noexcept {
  constexpr auto kGroupsLeast = tuned<int>("credits.groups_min");
  if (stream.messages_per_segment != 1 || slots >= kSharedSlotsLeast) return 1;
  static_assert(kSharedSlotsLeast / 2 <= kCreditGroupsMax, "groups of two are the most that there can be");
  int group = 1;
  while (2 * group * kGroupsLeast <= slots && slots % (2 * group) == 0) group *= 2;
  return group;
}

/// The same for streams of a pairwise exchange. By the credit of a block's last message the sender sees that the block
/// has been taken, so each message has its own.
constexpr int exchange_credit_group(const Stream& /*stream*/, int /*slots*/) noexcept { return 1; }

/// If all messages below `taken` have been taken, all messages below this number find their slot free and wait for no
/// credit. At first `taken` is 0.
constexpr std::uint64_t free_below(std::uint64_t taken, std::uint64_t slots) noexcept { return taken + slots; }

/// The first message of the group with which a receiver credits `message`. It gives the credit when it has taken
/// `group` messages of that group, in the word of the first one's slot. The credit's value is first + group.
constexpr std::uint64_t credited_group(std::uint64_t message, std::uint64_t group) noexcept {
  return message & ~(group - 1);
}

/// The first message of the group that must be credited before the slot of `message` is filled again. `message` is not
/// below free_below(0, slots).
constexpr std::uint64_t awaited_group(std::uint64_t message, std::uint64_t slots, std::uint64_t group) noexcept {
  return credited_group(message - slots, group);
}

/// A call with the messages from `begun` up to `ended` used no slots. At its end the receiver gives credits from this
/// message on, those that slots would have left: the next call may then use slots.
constexpr std::uint64_t first_released(std::uint64_t begun, std::uint64_t ended, std::uint64_t slots) noexcept {
  return ended - std::min(ended - begun, slots);
}

/// When a sender sees the credit of a call's last message on a stream, all messages below this number have been taken.
/// The call has the segments from `begun` up to `ended`. A receiver runs one call after another, so it has taken all
/// messages of earlier calls; it may still need other messages of this call.
constexpr std::uint64_t taken_before(std::uint64_t begun, std::uint64_t /*ended*/, std::uint64_t messages) noexcept {
  return begun * messages;
}

}  // namespace torii
