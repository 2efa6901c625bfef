// SPDX-License-Identifier: Apache-2.0
// The messages of engines: headers of active messages, and the cards by which engines find each other. They come from
// the network, so any value is handled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/tuned_constants.hpp"

namespace torii::ucx {

/// Identifies an active message.
enum MessageId : unsigned {
  kPut = 1,       ///< payload to target_offset, then `signal` to signal_offset
  kAsk = 2,       ///< rank `signal` wants to know that all before has arrived
  kAnswer = 3,    ///< rank `signal` confirms
  kGreeting = 4,  ///< rank `signal` is there
  kFarewell = 5,  ///< rank `signal` is about to close its engines
  kPiece = 6,     ///< payload to target_offset; the last piece is a kPut, whose signal covers all
};

/// Numbers with a handler: more than there are messages, and even (see Worker).
constexpr unsigned kHandlers = 8;

/// Payloads up to this size are one message: copying them costs less than a second transfer. Fits into UCX's first
/// packet (8 KiB).
inline constexpr auto kMessageMost = tuned<std::size_t>("sending.ucx_message_bytes_max");

/// The header of every active message.
struct Header {
  std::uint64_t target_offset;
  std::uint64_t signal_offset;
  std::uint64_t signal;
  std::uint64_t secret = 0;  ///< of the receiving engine; its peers learn it with the engine's card
};

/// Whether the sender knows the secret. Anybody who reaches the engine's port can send the rest.
inline bool knows(const void* header, std::size_t header_bytes, std::uint64_t secret) noexcept {
  Header read;
  if (header_bytes != sizeof(read)) return false;
  std::memcpy(&read, header, sizeof(read));
  return read.secret == secret;
}

constexpr bool lies_in(std::uint64_t offset, std::size_t bytes, std::size_t arena_bytes) noexcept {
  return bytes <= arena_bytes && offset <= arena_bytes - bytes;
}

/// The header of a put with that much payload into an arena of that size; nothing if no rank sends such a header.
inline std::optional<Header> read_put(const void* header, std::size_t header_bytes, std::size_t payload_bytes,
                                      std::size_t arena_bytes) noexcept {
  Header read;
  if (header_bytes != sizeof(read)) return std::nullopt;
  std::memcpy(&read, header, sizeof(read));
  const bool is_whole = read.signal_offset % sizeof(std::uint64_t) == 0 &&
                        lies_in(read.signal_offset, sizeof(std::uint64_t), arena_bytes) &&
                        (payload_bytes == 0 || lies_in(read.target_offset, payload_bytes, arena_bytes));
  return is_whole ? std::optional(read) : std::nullopt;
}

/// The rank that asks, answers or greets; -1 if there is no such rank.
inline int read_sender(const void* header, std::size_t header_bytes, int ranks) noexcept {
  Header read;
  if (header_bytes != sizeof(read)) return -1;
  std::memcpy(&read, header, sizeof(read));
  return read.signal < static_cast<std::uint64_t>(ranks) ? static_cast<int>(read.signal) : -1;
}

/// The data with which a peer reaches an engine. The views refer to the text that was read.
struct Card {
  std::uint64_t key_base = 0;  ///< where the memory begins for which the key is
  std::uint64_t secret = 0;
  std::string_view address;  ///< of the worker
  std::string_view key;      ///< of the table of the arena's extents; empty if nobody puts
  std::string_view row;      ///< the first of the table
};

inline std::string write_card(const Card& card) {
  const std::uint64_t front[] = {card.key_base, card.secret, card.address.size(), card.key.size()};
  std::string text(reinterpret_cast<const char*>(front), sizeof(front));
  return text.append(card.address).append(card.key).append(card.row);
}

/// Nothing if the text is not a card.
inline std::optional<Card> read_card(std::string_view text) noexcept {
  std::uint64_t front[4];
  if (text.size() < sizeof(front)) return std::nullopt;
  std::memcpy(front, text.data(), sizeof(front));
  text.remove_prefix(sizeof(front));
  if (front[2] == 0 || front[2] > text.size() || front[3] > text.size() - front[2]) return std::nullopt;
  const std::string_view rest = text.substr(front[2]);
  return Card{front[0], front[1], text.substr(0, front[2]), rest.substr(0, front[3]), rest.substr(front[3])};
}

}  // namespace torii::ucx
