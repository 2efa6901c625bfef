// SPDX-License-Identifier: Apache-2.0
// Credits of rings between nodes: when an entry is free again. Where several messages share a credit, both ends follow
// these rules; test_rings proves them for all sizes of rings.
#pragma once

#include <cstdint>

#include "runtime/base/tuned_constants.hpp"

namespace torii {

/// Streams with at least so many slots balance their messages over engines, which are timed by each message's credit.
inline constexpr auto kSharedSlotsLeast = tuned<int>("engines.shared_slots_min");

/// The first message of the group with which a receiver credits `message`. It gives the credit when it has taken
/// `group` messages of that group, in the word of the first one's entry. The credit's value is first + group. `group`
/// is a power of two that divides the entries.
constexpr std::uint64_t credited_group(std::uint64_t message, std::uint64_t group) noexcept {
  return message & ~(group - 1);
}

/// The first message of the group that must be credited before the entry of `message` is filled again. `message` is not
/// below `entries`.
constexpr std::uint64_t awaited_group(std::uint64_t message, std::uint64_t entries, std::uint64_t group) noexcept {
  return credited_group(message - entries, group);
}

}  // namespace torii
