// SPDX-License-Identifier: Apache-2.0
// The two ends of a standing ring: the messages of one stream after another, from one rank to another one or to itself.
// Message n uses entry n modulo the number of entries. The sender fills an entry when the ring's count says that its
// last message has been taken. The count is the receiver's: so many messages, in their order, it has taken. Inside a
// call messages may be sent and taken in any order; the count is then that of the messages before the first one that is
// missing. The memory order is that of runtime/fabric/words.hpp: a count is to all messages before it what a credit is
// to one.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "runtime/fabric/transport.hpp"
#include "runtime/fabric/words.hpp"
#include "runtime/rings/ring_area.hpp"

namespace torii {

/// The signal of a line in which a rank tells another node where it has memory for it. The line is written once.
inline constexpr std::uint64_t kToldSignal = 0x746f726969'67726e;
/// The word of the place in such a line; nothing if it has not come.
inline std::optional<std::uint64_t> read_told(const std::byte* line) noexcept {
  if (load_word(line) != kToldSignal) return {};
  std::uint64_t place = 0;
  std::memcpy(&place, line + sizeof(std::uint64_t), sizeof(place));
  return place;
}

/// The part of an end that both ends of a ring have.
struct RingEnd {
  std::byte* entries[kEntryKinds] = {};  ///< by EntryKind: the first entry, in the receiver's arena
  std::uint64_t first = 0;               ///< the number of the first message of the channel's call
  int peer = 0;                          ///< rank in the context
  int rank = 0;                          ///< the same in the team
  /// The mark of Transport::sleeping(); nullptr towards the rank itself, where there is nobody to wake.
  const std::atomic<std::uint32_t>* sleeping = nullptr;

  bool is_asleep() const noexcept { return sleeping != nullptr && is_marked(*sleeping); }
};

struct alignas(kLineBytes) SendEnd : RingEnd {
  const std::byte* count = nullptr;  ///< own arena
  std::uint64_t known = 0;           ///< what the count was when it was last looked at
  // The payloads of the call's messages that are too long for their lines:
  std::size_t part = 0;           ///< where they begin in the outbox
  std::size_t payload_bytes = 0;  ///< from one place to the next
  // Towards another node:
  std::byte* credits = nullptr;                        ///< own arena: a word for each entry
  const std::byte* grants = nullptr;                   ///< own arena: a line for each size of entries
  std::array<std::uint64_t, kDistantSizes> granted{};  ///< where the receiver's entries are, plus one; 0: not yet told
  std::array<std::byte, kInlineBytes> in_line{};       ///< the payload of a message that fits into its line

  /// Whether the receiver has taken all messages below `number`.
  bool is_taken_below(std::uint64_t number) noexcept {
    if (number <= known) return true;
    known = load_word(count);
    return number <= known;
  }
};

struct alignas(kLineBytes) ReceiveEnd : RingEnd {
  std::byte* count = nullptr;               ///< the sender's arena
  const std::byte* sender_arena = nullptr;  ///< where payloads are that do not fit into an entry
  std::uint64_t arena_bytes = 0;            ///< of that arena
  std::uint64_t taken = 0;                  ///< all messages below
  std::uint64_t ahead = 0;                  ///< bit i: message taken + 1 + i has been taken too
  std::uint64_t published = 0;
  // From another node:
  std::uint64_t credits_offset = 0;                  ///< in the sender's arena
  std::uint64_t grants_offset = 0;                   ///< likewise
  std::array<std::uint64_t, kDistantSizes> given{};  ///< where the entries are in the own arena, plus one; 0: nowhere
  std::array<std::uint8_t, kRingEntriesMax> in_group{};  ///< for each group of entries how many of it have been taken

  /// The message has been taken. It is fewer than kRingEntriesMax behind the first one that has not been.
  void take(std::uint64_t message) noexcept {
    if (message != taken) {
      ahead |= std::uint64_t{1} << (message - taken - 1);
      return;
    }
    ++taken;
    if (ahead == 0) return;
    const int more = std::countr_one(ahead);
    taken += static_cast<std::uint64_t>(more);
    ahead = ahead >> more >> 1;
  }
  /// All messages below `number` count as taken, whether they were sent or not.
  void take_below(std::uint64_t number) noexcept {
    taken = number;
    ahead = 0;
  }
  /// Tells the sender, if so many messages have been taken since it was told last.
  void publish(std::uint64_t every, Transport& transport) noexcept {
    if (taken - published < every) return;
    published = taken;
    store_word(count, taken);
    if (is_asleep()) transport.ring(peer);
  }
};

}  // namespace torii
