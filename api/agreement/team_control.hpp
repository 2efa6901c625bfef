// SPDX-License-Identifier: Apache-2.0
// The control memory of a team in each member's arena: failures, call records, departures.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "api/agreement/refused_calls.hpp"
#include "api/agreement/survivors_record.hpp"
#include "runtime/fabric/words.hpp"

namespace torii {

inline constexpr std::size_t kFailureTextBytes = 472;

/// Claimed once, by compare-and-swap, in the first member's arena: all survivors report the same cause. The memory
/// stays readable when that member is dead, since every process maps it.
struct alignas(kLineBytes) FailureRecord {
  enum State : std::uint32_t { kNone = 0, kClaimed = 1, kPublished = 2 };
  std::atomic<std::uint32_t> state;
  std::int32_t status;
  std::int32_t rank;  ///< in the team; -1: none
  MemberSet absent;   ///< as in Cause
  char text[kFailureTextBytes];
};

/// One record for each recent call of this rank. Peers that are stuck read it, to name calls that differ.
struct alignas(kLineBytes / 2) CallRecord {
  std::atomic<std::uint64_t> sequence;  ///< of the call, counted from 1, or persistent_sequence(); 0 while written
  std::atomic<std::uint64_t> count;
  std::atomic<std::uint64_t> kind;  ///< signature with its salt, collective, type and operation: pack_kind()
  std::atomic<std::int64_t> root;
};

/// A member's place in its calls, as its peers know it.
struct CallSnapshot {
  std::uint64_t sequence = 0;  ///< of the call that it waits in; fields as in CallRecord
  std::uint64_t count = 0;
  std::uint64_t kind = 0;
  std::int64_t root = 0;
  std::uint64_t completed = 0;  ///< as in TeamControl
};

constexpr std::uint64_t pack_kind(std::uint32_t signature, std::uint8_t collective, std::uint8_t type,
                                  std::uint8_t op) noexcept {
  return static_cast<std::uint64_t>(signature) << 32 | static_cast<std::uint64_t>(collective) << 16 |
         static_cast<std::uint64_t>(type) << 8 | op;
}
/// The same behind the calls before this one (CallHistory::salt()).
constexpr std::uint64_t salted(std::uint64_t kind, std::uint32_t salt) noexcept {
  return kind ^ static_cast<std::uint64_t>(salt) << 32;
}
/// Set in the kind of a persistent operation that is being prepared, to tell it from a call of the same kind.
inline constexpr std::uint64_t kPreparesInRecord = std::uint64_t{1} << 63 | std::uint64_t{1} << 24;
/// Set in the kind of several calls of a group that run as one.
inline constexpr std::uint64_t kPacksInRecord = std::uint64_t{1} << 25;
/// Set in the kind of a call over leaves.
inline constexpr std::uint64_t kLeavesInRecord = std::uint64_t{1} << 26;
/// Set in the kind of a call whose operation does not commute.
inline constexpr std::uint64_t kOrderedInRecord = std::uint64_t{1} << 27;
/// Records of the calls that share channels, then those of the persistent operations.
/// Ranks whose calls differ are mostly fewer calls apart when one of them has to wait. Otherwise a message that does
/// not fit tells it (find_ring_fault()).
inline constexpr std::size_t kSharedRecords = 256;
inline constexpr std::size_t kCallRecords = kSharedRecords + 16;

/// The sequence of a persistent operation's start: its channel, and how often it was started there. Never equal to that
/// of a call on the shared channels, which count from 1.
inline constexpr std::uint64_t kPersistent = std::uint64_t{1} << 63;
inline constexpr int kStartsBits = 40;
constexpr std::uint64_t persistent_sequence(std::size_t channel, std::uint64_t starts) noexcept {
  return kPersistent | static_cast<std::uint64_t>(channel) << kStartsBits | starts;
}
constexpr bool is_persistent(std::uint64_t sequence) noexcept { return (sequence & kPersistent) != 0; }
constexpr std::size_t record_index(std::uint64_t sequence) noexcept {
  return is_persistent(sequence) ? kSharedRecords + (sequence >> kStartsBits) % (kCallRecords - kSharedRecords)
                                 : sequence % kSharedRecords;
}

/// The values of TeamControl::departed, which a member sets when it leaves; 0: it has not left.
inline constexpr std::uint8_t kHasLeft = 1;  ///< it makes no more calls
inline constexpr std::uint8_t kIsGone = 2;   ///< its last word: it writes no more either

/// The parts of each member's memory into which a member may have written, besides control memory.
struct TouchedMemory {
  std::uint64_t pair_bytes = 0;  ///< from the beginning of the messages of sends and receives
  std::uint64_t ring_bytes = 0;  ///< from the beginning of the standing rings
};

/// Fresh arena memory is zero, and a zeroed TeamControl is valid: no rank constructs it.
struct TeamControl {
  FailureRecord failure;  ///< used in the first member's arena only
  /// Twice the number of splits that all members agreed on, and one more after one that failed; then there are no more.
  /// Used in the first member's arena only.
  std::atomic<std::uint32_t> splits;
  CallRecord call_records[kCallRecords];
  SurvivorsRecord survivors;
  RefusalNotices refusals;  ///< of this rank
  /// The last call up to which this rank has ended all: a rank that dies after a call does not hold that call up.
  alignas(kLineBytes) std::atomic<std::uint64_t> completed;
  /// When this rank last attended to a call that it waits in (now_ns()): tells a rank that waits from one that is
  /// stuck.
  std::atomic<std::int64_t> last_attentive_ns;
  /// The most that any departed member may have written into (TouchedMemory).
  alignas(kLineBytes) std::atomic<std::uint64_t> touched_pair_bytes;
  std::atomic<std::uint64_t> touched_ring_bytes;
  /// Where this rank's table of persistent operations' rings is (PersistentRings).
  std::atomic<std::uint64_t> own_rings;
  /// Not 0: a member of this node has begun to send and receive, so this rank takes messages when it waits.
  std::atomic<std::uint32_t> has_sends;
  alignas(kLineBytes) std::atomic<std::uint8_t> departed[kTeamRanksMax];  ///< written by member m
};

}  // namespace torii
