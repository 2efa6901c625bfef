// SPDX-License-Identifier: Apache-2.0
// The words that ranks write into each other's memory: signals, credits, buffer offers. One memory-order argument
// covers all of them. A writer first stores the payload, then the word with release order. A reader loads the word with
// acquire order and only then touches the payload. So the payload happens-before its use on every architecture, ARM
// included. A credit goes the other way. A reader takes all of the payload, then stores the word with release order,
// which no read before it can pass. The writer loads the word with acquire order and only then stores the next payload.
// Stores past the caches are in no such order: kernels::store_fence() stands between them and the word. Two ranks never
// write one word, except those that docs/memory_order.md lists ("Words with several writers").
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace torii {

inline constexpr std::size_t kLineBytes = 64;
/// Payload that travels in the signal's own line.
inline constexpr std::size_t kInlineBytes = kLineBytes - sizeof(std::uint64_t);

/// A cell holds a short message: its signal, then its payload. Cells are adjacent, so if a sender is ahead of its
/// receiver, one line holds several messages: four short ones or two longer ones.
inline constexpr std::size_t kCellBytes = 16;
inline constexpr std::size_t kWideCellBytes = 32;
constexpr std::size_t cell_payload_bytes(std::size_t cell_bytes) noexcept { return cell_bytes - sizeof(std::uint64_t); }

static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free, "words are shared between processes");

inline std::uint64_t load_word(const std::byte* at) noexcept {
  // atomic_ref takes no const object in C++20; a load does not write.
  auto& word = *reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(at));
  return std::atomic_ref<std::uint64_t>(word).load(std::memory_order_acquire);
}

inline std::uint64_t load_word(const std::uint64_t& word) noexcept {
  return load_word(reinterpret_cast<const std::byte*>(&word));
}

inline void store_word(std::byte* at, std::uint64_t value) noexcept {
  std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(at)).store(value, std::memory_order_release);
}

/// Whether a peer has set its mark of sleepers; asked behind a store for that peer. The compiler keeps this order. The
/// processor may not, which a sleeper mends (docs/memory_order.md, "The doorbell").
inline bool is_marked(const std::atomic<std::uint32_t>& sleeping) noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return sleeping.load(std::memory_order_relaxed) != 0;
}

/// A signal holds the call's signature above the low half of the message number. So a message of another call
/// (operation, type, count or root) never looks like the awaited one. The signature is never 0, so fresh memory is no
/// signal. The upper half of the number is added to the signature: what a slot or cell held 2^32 messages ago is no
/// signal either.
constexpr std::uint64_t signal_word(std::uint32_t signature, std::uint64_t number) noexcept {
  return (static_cast<std::uint64_t>(signature) << 32) + number;
}

/// The signature of messages of a block of `bytes` bytes, fewer than 65536. A reader that knows the call's signature
/// can tell the length. The lower half stays as it is: salts of like calls differ there.
constexpr std::uint32_t with_length(std::uint32_t signature, std::size_t bytes) noexcept {
  return signature ^ static_cast<std::uint32_t>(bytes << 16);
}
/// The length in the signal of message `number` of the call with that signature; 0 if the signal is another one.
constexpr std::size_t length_in_signal(std::uint64_t word, std::uint32_t signature, std::uint64_t number) noexcept {
  if (static_cast<std::uint32_t>(word) != static_cast<std::uint32_t>(number)) return 0;
  const std::uint64_t difference = (word - number) >> 32 ^ signature;
  return difference % 65536 == 0 ? static_cast<std::size_t>(difference / 65536) : 0;
}

/// Whether the word is a signal of message `number`, whatever its signature is. Signatures are odd: a word that was
/// left there 2^32 messages ago has an even one, seen with today's number.
constexpr bool has_number(std::uint64_t word, std::uint64_t number) noexcept {
  return static_cast<std::uint32_t>(word) == static_cast<std::uint32_t>(number) && ((word - number) >> 32 & 1) != 0;
}

constexpr std::size_t round_up(std::size_t value, std::size_t multiple) noexcept {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace torii
