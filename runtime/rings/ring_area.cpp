// SPDX-License-Identifier: Apache-2.0
// Divides the memory of standing rings.
#include "runtime/rings/ring_area.hpp"

#include <algorithm>
#include <bit>

#include "runtime/base/page.hpp"

namespace torii {
namespace {

/// Rings have fewer entries where the area of a member's rings would take more of its addresses.
constexpr std::size_t kAreaBytesMost = std::size_t{16} << 20;
/// Algorithms declare at most so many streams of a pair (Algorithm::pair_streams).
constexpr int kRings = 16;
constexpr int kEntriesLeast = 8;
/// An outbox takes so much of its rank's addresses for each rank of the team, from the least to the most. Two ranks of
/// a node have less, enough for two calls of each row of the tune table while sums travel as their type: so programs
/// may keep 10,000 such parts in an arena of 64 GiB.
constexpr std::size_t kOutboxBytesOfRank = std::size_t{2} << 20;
constexpr std::size_t kOutboxBytesOfTwo = std::size_t{2} << 20;
constexpr std::size_t kOutboxBytesLeast = std::size_t{8} << 20;
constexpr std::size_t kOutboxBytesMost = std::size_t{64} << 20;
/// Between nodes each member has a line for each own channel of another one, which take so much together, or what the
/// fewest such channels take.
constexpr std::size_t kToldBytes = std::size_t{16} << 20;
constexpr int kOwnChannelsLeast = 256;
constexpr int kOwnChannelsLeastBounded = 16;
/// Flows of so many members, and exchanges of all, have entries of the longest size at once in memory that is bounded.
constexpr int kFlowPeers = 16;

std::size_t bytes_of_entries(const RingSizes& sizes) noexcept {
  std::size_t bytes = 0;
  for (const EntryKind kind : {EntryKind::line, EntryKind::cell, EntryKind::wide_cell}) {
    bytes += round_up(static_cast<std::size_t>(sizes.entries) * entry_bytes(kind), kLineBytes);
  }
  return bytes;
}

std::size_t area_bytes_most(std::size_t memory_bytes) noexcept {
  return std::min(kAreaBytesMost, memory_bytes / 4) / kPageBytes * kPageBytes;
}
std::size_t outbox_bytes_most(int channels, std::size_t memory_bytes) noexcept {
  return memory_bytes / 4 / static_cast<std::size_t>(channels) / kPageBytes * kPageBytes;
}

/// The sizes of a team whose area may have any number of bytes.
RingSizes full_sizes(int ranks, int channels, std::size_t memory_bytes) noexcept {
  const std::size_t of_ranks = static_cast<std::size_t>(ranks) * kOutboxBytesOfRank;
  const std::size_t wanted = std::clamp(of_ranks, kOutboxBytesLeast, kOutboxBytesMost);
  return {.ranks = ranks,
          .channels = channels,
          .entries = kRingEntriesMax,
          .rings = ranks == 1 ? 1 : kRings,
          .outbox_bytes = std::min(wanted / kPageBytes * kPageBytes, outbox_bytes_most(channels, memory_bytes)),
          .own_channels = kOwnChannelsMost};
}

std::size_t area_bytes(const RingSizes& sizes) noexcept { return RingArea(sizes).total_bytes(); }

/// The lines in which own channels are told, where these are not the fewest.
int told_lines(std::size_t memory_bytes) noexcept {
  return static_cast<int>(std::min(kToldBytes, memory_bytes / 16) / kLineBytes);
}

/// The longest entries of which all that there may be at once take at most `bytes`, but not the shortest, which have
/// no room behind their line.
int sizes_within(std::size_t bytes, int peers, int channels, int entries) noexcept {
  const std::size_t most = bytes / (static_cast<std::size_t>(peers) * static_cast<std::size_t>(channels) *
                                    static_cast<std::size_t>(entries));
  int sizes = kDistantSizes;
  while (sizes > 2 && distant_entry_bytes(sizes - 1) > most) --sizes;
  return sizes;
}

}  // namespace

int distant_size(std::size_t payload_bytes) noexcept {
  int size = 0;
  while (size < kDistantSizes && payload_bytes > distant_payload_bytes(size)) ++size;
  return size;
}

RingSizes ring_sizes(int ranks, int channels, std::size_t memory_bytes) noexcept {
  RingSizes sizes = full_sizes(ranks, channels, memory_bytes);
  if (ranks <= 2) sizes.outbox_bytes = std::min(sizes.outbox_bytes, kOutboxBytesOfTwo);
  const std::size_t most = area_bytes_most(memory_bytes);
  while (area_bytes(sizes) > most && sizes.entries > kEntriesLeast) sizes.entries /= 2;
  return sizes;
}

/// The larger of two parts need not have the larger area: it may have fewer entries.
std::size_t rings_bytes_most(int ranks, int channels, std::size_t memory_bytes) noexcept {
  RingSizes sizes = full_sizes(ranks, channels, memory_bytes);
  const std::size_t full = area_bytes(sizes);
  sizes.entries = kEntriesLeast;
  return std::max(std::min(full, area_bytes_most(memory_bytes)), area_bytes(sizes));
}

/// A credit costs as much as a short message, so many of these share one. But entries are touched for the first time
/// one by one, and 8 long messages fill any wire. Exchanges have fewer entries for each peer where there are many
/// ranks.
RingSizes distant_ring_sizes(int ranks, int team_ranks, int channels, bool balances,
                             std::size_t memory_bytes) noexcept {
  RingSizes sizes = full_sizes(team_ranks, channels, memory_bytes);
  sizes.ranks = ranks;
  sizes.rings = 1 + kFlowKinds * kRings;
  // Payloads for other nodes have a place for each entry.
  sizes.outbox_bytes = std::min(2 * sizes.outbox_bytes, outbox_bytes_most(channels, memory_bytes));
  sizes.team_ranks = team_ranks;
  sizes.kinds = {{{team_ranks <= 32 ? 8 : team_ranks <= 128 ? 4 : 2, 1}, {32, 16}, {16, 8}, {8, 4}}};
  if (balances) std::fill(sizes.kinds.begin() + 1, sizes.kinds.end(), KindSizes{kRingEntriesMax, 1});
  sizes.entries = balances ? kRingEntriesMax : 32;
  const bool is_bounded = memory_bytes != kUnbounded;
  sizes.own_channels = std::clamp(told_lines(memory_bytes) / team_ranks,
                                  is_bounded ? kOwnChannelsLeastBounded : kOwnChannelsLeast, kOwnChannelsMost);
  if (!is_bounded) return sizes;
  const KindSizes longest = sizes.of(RingKind::long_flow);
  const int peers = std::max(team_ranks - 1, 1);
  sizes.flow_sizes = sizes_within(memory_bytes / 4, std::min(peers, kFlowPeers), channels, longest.entries);
  sizes.exchange_sizes = sizes_within(memory_bytes / 4, peers, channels, sizes.of(RingKind::exchange).entries);
  return sizes;
}

/// A smaller part may have more lines of own channels, as many as these lines take at most.
std::size_t distant_rings_bytes_most(int ranks, int team_ranks, int channels, bool balances,
                                     std::size_t memory_bytes) noexcept {
  RingSizes sizes = distant_ring_sizes(ranks, team_ranks, channels, balances, memory_bytes);
  const int lines = told_lines(memory_bytes);
  sizes.own_channels = std::max(sizes.own_channels, std::min((lines + team_ranks - 1) / team_ranks, kOwnChannelsMost));
  return area_bytes(sizes);
}

/// Powers of two, so that a channel serves one operation after another.
RingSizes own_ring_sizes(const RingSizes& shared, int slots, int streams) noexcept {
  const auto power_of = [](int least) { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(least))); };
  RingSizes sizes = shared;
  sizes.channels = 1;
  sizes.rings = shared.several_nodes() ? 1 + kFlowKinds * power_of(streams) : power_of(streams);
  if (!shared.several_nodes()) sizes.entries = power_of(std::max(slots, kEntriesLeast));
  sizes.outbox_bytes = 0;
  sizes.own_channels = 0;
  return sizes;
}

RingArea::RingArea(const RingSizes& sizes) noexcept : sizes_(sizes) {
  const std::size_t all_pairs = pairs(sizes.channels);
  std::size_t at = 0;
  const auto take = [&](std::size_t bytes) {
    const std::size_t begin = at;
    at = round_up(at + bytes, kLineBytes);
    return begin;
  };
  if (sizes.several_nodes()) {
    credit_bytes_ = round_up(static_cast<std::size_t>(sizes.entries) * sizeof(std::uint64_t), kLineBytes);
    distant_bytes_ = distant(sizes.channels, 0, 0);
    at = distant_bytes_;
  }
  const auto take_firsts = [&](EntryKind kind) {
    const auto number = static_cast<std::size_t>(kind);
    kind_bytes_[number] = round_up(static_cast<std::size_t>(sizes.entries) * entry_bytes(kind), kLineBytes);
    firsts_[number] = take(all_pairs * kind_bytes_[number]);
  };
  take_firsts(EntryKind::cell);
  counts_bytes_ = round_up(static_cast<std::size_t>(sizes.rings) * sizeof(std::uint64_t), kLineBytes);
  counts_ = take(all_pairs * counts_bytes_);
  offers_ = take(all_pairs * kPairOfferLines * kLineBytes);
  take_firsts(EntryKind::wide_cell);
  take_firsts(EntryKind::line);
  ring_bytes_ = distant_bytes_ + all_pairs * bytes_of_entries(sizes);
  others_ = take(static_cast<std::size_t>(sizes.rings - 1) * ring_bytes_);
  told_ = at;
  if (sizes.several_nodes()) at = told(static_cast<std::size_t>(sizes.own_channels), 0);
  total_bytes_ = std::max(round_up(at, kPageBytes), kPageBytes);  // a rank alone has a place, too
}

std::size_t RingArea::entries(EntryKind kind, int channel, int ring, int member, int peer) const noexcept {
  const auto number = static_cast<std::size_t>(kind);
  if (ring == 0) return firsts_[number] + pair(channel, member, peer) * kind_bytes_[number];
  std::size_t at = words_bytes(ring) + distant_bytes_ + pair(channel, member, peer) * bytes_of_entries(sizes_);
  for (std::size_t earlier = 0; earlier < number; ++earlier) at += kind_bytes_[earlier];
  return at;
}

std::size_t RingArea::words_bytes(int rings) const noexcept {
  if (rings <= 0) return 0;
  return others_ + static_cast<std::size_t>(rings - 1) * ring_bytes_;
}

}  // namespace torii
