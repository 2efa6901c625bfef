// SPDX-License-Identifier: Apache-2.0
// Divides the memory of standing rings.
#include "runtime/rings/ring_area.hpp"

#include <algorithm>

#include "runtime/base/page.hpp"

namespace torii {
namespace {

/// The outboxes of all channels take so much of a member's addresses, and the area of its rings at most so much.
constexpr std::size_t kOutboxesBytes = std::size_t{16} << 20;
constexpr std::size_t kAreaBytesMost = std::size_t{8} << 20;
/// Algorithms declare at most 12 streams of a pair (Algorithm::pair_streams).
constexpr int kRingsMost = 16;
constexpr int kRingsLeast = 4;
constexpr int kEntriesLeast = 8;
constexpr int kChannelsMost = 8;
std::size_t bytes_of_entries(const RingSizes& sizes) noexcept {
  std::size_t bytes = 0;
  for (const EntryKind kind : {EntryKind::line, EntryKind::cell, EntryKind::wide_cell}) {
    bytes += round_up(static_cast<std::size_t>(sizes.entries) * entry_bytes(kind), kLineBytes);
  }
  return bytes;
}

/// The sizes of a team whose area may have any number of bytes.
RingSizes full_sizes(int ranks, int channels) noexcept {
  const std::size_t outbox_bytes = kOutboxesBytes / static_cast<std::size_t>(channels) / kPageBytes * kPageBytes;
  return {ranks, channels, kRingEntriesMax, ranks == 1 ? 1 : kRingsMost, outbox_bytes};
}

}  // namespace

RingSizes ring_sizes(int ranks, int channels) noexcept {
  RingSizes sizes = full_sizes(ranks, channels);
  const auto is_too_much = [&] { return RingArea(sizes).total_bytes() > kAreaBytesMost; };
  while (is_too_much() && sizes.rings > kRingsLeast) sizes.rings = std::max(kRingsLeast, sizes.rings / 2);
  while (is_too_much() && sizes.entries > kEntriesLeast) sizes.entries /= 2;
  return sizes;
}

std::size_t rings_bytes_most(int ranks) noexcept {
  const RingSizes sizes = full_sizes(std::min(ranks, kRingRanksMost), kChannelsMost);
  return std::min(kAreaBytesMost, RingArea(sizes).total_bytes());
}

RingArea::RingArea(const RingSizes& sizes) noexcept : sizes_(sizes) {
  const std::size_t pairs = pair(sizes.channels, 0);
  std::size_t at = 0;
  const auto take = [&](std::size_t bytes) {
    const std::size_t begin = at;
    at = round_up(at + bytes, kLineBytes);
    return begin;
  };
  const auto take_firsts = [&](EntryKind kind) {
    const auto number = static_cast<std::size_t>(kind);
    kind_bytes_[number] = round_up(static_cast<std::size_t>(sizes.entries) * entry_bytes(kind), kLineBytes);
    firsts_[number] = take(pairs * kind_bytes_[number]);
  };
  take_firsts(EntryKind::cell);
  counts_bytes_ = round_up(static_cast<std::size_t>(sizes.rings) * sizeof(std::uint64_t), kLineBytes);
  counts_ = take(pairs * counts_bytes_);
  offers_ = take(pairs * kPairOfferLines * kLineBytes);
  take_firsts(EntryKind::wide_cell);
  take_firsts(EntryKind::line);
  others_ = take(pairs * static_cast<std::size_t>(sizes.rings - 1) * bytes_of_entries(sizes));
  total_bytes_ = round_up(at, kPageBytes);
}

std::size_t RingArea::entries(EntryKind kind, int channel, int ring, int sender) const noexcept {
  const auto number = static_cast<std::size_t>(kind);
  if (ring == 0) return firsts_[number] + pair(channel, sender) * kind_bytes_[number];
  std::size_t at = words_bytes(ring) + pair(channel, sender) * bytes_of_entries(sizes_);
  for (std::size_t earlier = 0; earlier < number; ++earlier) at += kind_bytes_[earlier];
  return at;
}

std::size_t RingArea::words_bytes(int rings) const noexcept {
  if (rings == 0) return 0;
  return others_ + pair(sizes_.channels, 0) * static_cast<std::size_t>(rings - 1) * bytes_of_entries(sizes_);
}

}  // namespace torii
