// SPDX-License-Identifier: Apache-2.0
// The parts of a collective call on which a plan may depend. Everything here is equal on all ranks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace torii {

enum class Collective : std::uint8_t {
  barrier,
  broadcast,
  reduce,
  allreduce,
  all_gather,
  reduce_scatter,
  alltoall,
  scatter,
  gather,
  scan,
  exscan
};
inline constexpr int kCollectiveCount = 11;

std::string_view name(Collective collective) noexcept;
std::optional<Collective> parse_collective(std::string_view text) noexcept;

constexpr bool has_root(Collective c) {
  return c == Collective::broadcast || c == Collective::reduce || c == Collective::scatter || c == Collective::gather;
}
/// Rank r gets what ranks 0 to r have, combined in rank order (scan), or ranks 0 to r - 1 (exscan; rank 0 gets
/// nothing).
constexpr bool is_prefix(Collective c) { return c == Collective::scan || c == Collective::exscan; }
constexpr bool combines(Collective c) {
  return c == Collective::reduce || c == Collective::allreduce || c == Collective::reduce_scatter || is_prefix(c);
}
/// Every message is meant for one rank: blocks go from one rank to another and are combined with nothing.
constexpr bool is_personalised(Collective c) {
  return c == Collective::alltoall || c == Collective::scatter || c == Collective::gather;
}
/// The vector consists of one block for each rank.
constexpr bool has_block_per_rank(Collective c) {
  return c == Collective::all_gather || c == Collective::reduce_scatter || is_personalised(c);
}
/// Whether all blocks of a plan have one length, whatever the length of the vector. Messages of a bundle are packed, so
/// they rely on it. Other collectives may be called with lengths per rank, and parts of a rank's block may be short.
constexpr bool has_equal_blocks(Collective c, int blocks, int ranks) {
  return (c == Collective::alltoall || c == Collective::all_gather) && blocks == ranks;
}

/// Lanes to each site of a tree of links, in the order of sites_of() (collectives/building/sites.hpp); 0: as many as
/// the site has ranks for. The value for the root's own site is not used.
inline constexpr std::size_t kSitesMax = 16;
using SiteLanes = std::array<std::uint8_t, kSitesMax>;

/// The knobs of a plan. They come from the tune table or from settings and are equal on all ranks.
struct Tuning {
  std::size_t segment_bytes = 32 * 1024;  ///< largest payload of one put, in bytes of the vector's own type
  int slots = 8;                          ///< slots of every stream
  int window = 4;                         ///< segments of one lane, or transfers of a pairwise exchange, in flight
  /// `node`: whole operands travel at once, by value, and every rank combines all of them. Alltoall, scatter and
  /// gather: whole blocks travel at once.
  bool one_shot = false;
  int radix = 2;             ///< `floyd`: the base of the digits by which blocks travel; at least 2
  bool common_root = false;  ///< `trinaryx3`: the trees of an allreduce hang from rank 0, as the paper's do
  SiteLanes lanes = {};      ///< `multilane`
  bool operator==(const Tuning&) const = default;
};

}  // namespace torii
