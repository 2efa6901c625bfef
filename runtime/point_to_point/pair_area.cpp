// SPDX-License-Identifier: Apache-2.0
// Sizes of the messages of sends and receives.
#include "runtime/point_to_point/pair_area.hpp"

#include "runtime/base/page.hpp"

namespace torii {
namespace {

constexpr int kEntriesMost = 64;
constexpr int kEntriesLeast = 8;
constexpr std::size_t kEntriesBytesMost = std::size_t{256} << 10;  ///< of all rings to a rank

}  // namespace

PairSizes pair_sizes(int ranks) noexcept {
  PairSizes sizes = {ranks, kEntriesMost, kPairPayloads, pair_place_bytes(ranks)};
  while (sizes.entries > kEntriesLeast &&
         static_cast<std::size_t>(ranks) * static_cast<std::size_t>(sizes.entries) * kLineBytes > kEntriesBytesMost) {
    sizes.entries /= 2;
  }
  return sizes;
}

PairSizes distant_pair_sizes(int ranks, int team_ranks) noexcept {
  PairSizes sizes = pair_sizes(ranks);
  sizes.place_bytes = pair_place_bytes(team_ranks);
  sizes.team_ranks = team_ranks;
  return sizes;
}

std::size_t PairArea::total_bytes() const noexcept {
  return round_up(distant() + peers() * (credits_bytes() + 2 * distant_bytes()), kPageBytes);
}

}  // namespace torii
