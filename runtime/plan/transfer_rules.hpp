// SPDX-License-Identifier: Apache-2.0
// How the two ranks of a transfer of a pairwise exchange agree, and when a block that uses no slots is complete. The
// executor follows these rules, and the verifier proves them (ExecutorRules).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/base/tuned_constants.hpp"
#include "runtime/plan/plan.hpp"

namespace torii {

/// How a peer accesses an operand; a part of buffer offers.
enum OfferKind : std::uint64_t { kByValue = 0, kInArena = 1, kReadable = 2 };

/// How the messages of a transfer travel in a call. Unknown until the peer's buffer offer has come.
enum class TransferWay : std::uint8_t { unknown, through_slots, write_in_place, read_in_place, read_privately };

/// Both ends know both buffer offers of the pair, so they choose the same way. `reach`: of the sender's block, an
/// OfferKind. `can_write`: the receiver's place is in its arena.
constexpr TransferWay way_of(const PairwiseExchange& exchange, std::uint64_t reach, bool can_write) noexcept {
  if (can_write && !(exchange.prefers_reads && reach != kByValue)) return TransferWay::write_in_place;
  return reach == kInArena    ? TransferWay::read_in_place
         : reach == kReadable ? TransferWay::read_privately
                              : TransferWay::through_slots;
}

/// The receiver takes the block out of the sender's memory.
constexpr bool is_read(TransferWay way) noexcept {
  return way == TransferWay::read_in_place || way == TransferWay::read_privately;
}

/// A block of a call with unequal blocks is short up to this length. Short blocks go through slots at once: both ends
/// know the length, so they choose alike without buffer offers.
inline constexpr auto kAtOnceBytes = tuned<std::size_t>("exchanges.short_block_bytes");
static_assert(kAtOnceBytes < 65536, "the signature of its messages tells the length");

/// The lines between two ranks for the offers of one of them.
inline constexpr std::uint64_t kOfferLines = 2;
/// The line of a rank's offer, by the number of offers that it has made before. A rank makes an offer when it has
/// received one, not when its own was read, so one line would not do.
constexpr std::uint64_t line_of_offer(std::uint64_t offers_made) noexcept { return offers_made % kOfferLines; }

/// Bytes that are copied in place, or read out of a peer's memory, before other transfers get their turn.
inline constexpr auto kPortionBytes = tuned<std::size_t>("exchanges.portion_bytes");
constexpr std::size_t portion_bytes(std::size_t done_bytes, std::size_t block_bytes) noexcept {
  return std::min(kPortionBytes, block_bytes - done_bytes);
}
/// Whether a block is complete with this part. A block that is written in place then has its one signal, and one that
/// used no slots counts.
constexpr bool completes_block(std::size_t done_bytes, std::size_t part_bytes, std::size_t block_bytes) noexcept {
  return done_bytes + part_bytes == block_bytes;
}

}  // namespace torii
