// SPDX-License-Identifier: Apache-2.0
// What a team keeps in each member's arena beside its staging: failures, the board of calls, departures.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/words.hpp"

namespace torii {

inline constexpr int kTeamRanksMax = 1024;
inline constexpr std::size_t kFailureTextBytes = 472;

/// Claimed once, by compare-and-swap, in the first member's arena: all survivors report the same cause. The memory
/// stays readable when that member is dead, since every process maps it.
struct alignas(kLineBytes) FailureRecord {
  enum State : std::uint32_t { kNone = 0, kClaimed = 1, kPublished = 2 };
  std::atomic<std::uint32_t> state;
  std::int32_t status;
  std::int32_t rank;  ///< in the team; -1: none
  char text[kFailureTextBytes];
};

/// One line per recent call: what this rank called. Peers read it when they are stuck, to name calls that differ.
struct alignas(kLineBytes) BoardLine {
  std::atomic<std::uint64_t> sequence;  ///< of the call, counted from 1; 0 while the line is being written
  std::atomic<std::uint64_t> count;
  std::atomic<std::uint64_t> kind;  ///< signature, collective, type and operation: pack_kind()
  std::atomic<std::int64_t> root;
};

constexpr std::uint64_t pack_kind(std::uint32_t signature, std::uint8_t collective, std::uint8_t type,
                                  std::uint8_t op) noexcept {
  return static_cast<std::uint64_t>(signature) << 32 | static_cast<std::uint64_t>(collective) << 16 |
         static_cast<std::uint64_t>(type) << 8 | op;
}
inline constexpr std::size_t kBoardLines = 16;

/// How the members of a poisoned team agree who lives: each publishes its new staging, the first to find everybody
/// published or dead decides, in the first member's arena.
struct alignas(kLineBytes) SurvivorsRecord {
  std::atomic<std::uint64_t> staging;  ///< own: offset of the new team's memory + 1
  std::atomic<std::uint32_t> state;    ///< first member's: as FailureRecord::State
  std::uint64_t members[kTeamRanksMax / 64];
};

/// Fresh arena memory is zero, and a zeroed TeamControl is a valid one: nobody constructs it.
struct TeamControl {
  FailureRecord failure;  ///< used in the first member's arena only
  BoardLine board[kBoardLines];
  SurvivorsRecord survivors;
  /// The last call up to which this rank has ended all: a rank that dies after a call does not hold that call up.
  alignas(kLineBytes) std::atomic<std::uint64_t> completed;
  alignas(kLineBytes) std::atomic<std::uint64_t> recycled;  ///< twice the number of times the staging was emptied
  alignas(kLineBytes) std::atomic<std::uint8_t> departed[kTeamRanksMax];  ///< member m wrote its last word here
};

}  // namespace torii
