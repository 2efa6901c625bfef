// SPDX-License-Identifier: Apache-2.0
// Lays out the buffers of a call.
#include "tests/clients/fuzz_sides.hpp"

#include <numeric>

namespace torii::clients {
namespace {

/// Units to elements.
int elements(const Layout& layout, int units) { return units * Layout::kUnit / layout.per_element(); }

/// Places with a gap of one element behind every block.
std::size_t place(const std::vector<int>& counts, std::vector<int>& places) {
  int at = 0;
  for (const int count : counts) {
    places.push_back(at);
    at += count + 1;
  }
  return static_cast<std::size_t>(at);
}

/// Blocks of alltoallw: some keep their type, the others are of as many basic elements side by side, which take no more
/// room. Other ranks see no difference.
void mix_types(const Layout& layout, Random& random, std::vector<int>& counts, std::vector<int>& places,
               std::vector<MPI_Datatype>& types) {
  for (std::size_t block = 0; block < counts.size(); ++block) {
    places[block] *= static_cast<int>(layout.extent());
    const bool plain = draw(random, 0, 1) == 0 && static_cast<std::ptrdiff_t>(layout.places().front()) >= 0;
    types.push_back(plain ? layout.basic().type : layout.type());
    if (plain) counts[block] *= layout.per_element();
  }
}

Layout layout_of(const Case& call, int rank, int side) {
  if (call.user == 2) return Layout::pair_of(call.basic, call.shape != 0);
  if (combines(call.collective)) return Layout(call.basic, call.shape);
  // Open MPI 4.1.4 unpacks a part of an element of more than 16 bytes over the end of its own buffer.
  if (call.basic.bytes > 16) return Layout(call.basic, 0);
  Random own(call.data_seed + 977 * static_cast<std::uint64_t>(rank) + static_cast<std::uint64_t>(side));
  return Layout(call.basic, draw(own, 0, Layout::kShapes - 1));
}

/// Each rank has types of its own in an alltoallw.
void mix_types(const Case& call, int rank, Sides& sides) {
  Random own(call.data_seed + 7717 * static_cast<std::uint64_t>(rank));
  mix_types(sides.in_layout, own, sides.in_counts, sides.in_places, sides.in_types);
  mix_types(sides.out_layout, own, sides.out_counts, sides.out_places, sides.out_types);
}

}  // namespace

bool combines(Collective collective) { return collective >= Collective::reduce && collective <= Collective::exscan; }
bool has_counts(Collective collective) {
  switch (collective) {
    case Collective::reduce_scatter:
    case Collective::allgatherv:
    case Collective::gatherv:
    case Collective::scatterv:
    case Collective::alltoallv:
    case Collective::alltoallw:
      return true;
    default:
      return false;
  }
}

Sides sides_of(const Case& call, int rank, int ranks) {
  Sides sides(layout_of(call, rank, 0), layout_of(call, rank, 1));
  const auto all = static_cast<std::size_t>(ranks);
  const auto set = [&](std::size_t in_blocks, std::size_t out_blocks) {
    const bool unit = !combines(call.collective);
    sides.in_count = static_cast<std::size_t>(unit ? elements(sides.in_layout, call.count) : call.count);
    sides.out_count = static_cast<std::size_t>(unit ? elements(sides.out_layout, call.count) : call.count);
    sides.in_elements = sides.in_count * in_blocks;
    sides.out_elements = sides.out_count * out_blocks;
  };
  const auto set_v = [&](bool in_all, bool out_all) {
    for (const int count : call.counts) {
      sides.in_counts.push_back(
          elements(sides.in_layout, in_all ? count : call.counts[static_cast<std::size_t>(rank)]));
      sides.out_counts.push_back(
          elements(sides.out_layout, out_all ? count : call.counts[static_cast<std::size_t>(rank)]));
    }
    sides.in_elements = place(sides.in_counts, sides.in_places);
    sides.out_elements = place(sides.out_counts, sides.out_places);
  };
  switch (call.collective) {
    case Collective::barrier:
      break;
    case Collective::allgather:
    case Collective::gather:
      set(1, all);
      break;
    case Collective::scatter:
    case Collective::reduce_scatter_block:
      set(all, call.in_place ? all : 1);
      break;
    case Collective::alltoall:
      set(all, all);
      break;
    case Collective::reduce_scatter:
      sides.in_elements = static_cast<std::size_t>(std::accumulate(call.counts.begin(), call.counts.end(), 0));
      sides.out_elements = sides.in_elements;
      break;
    case Collective::allgatherv:
    case Collective::gatherv:
      set_v(false, true);
      break;
    case Collective::scatterv:
      set_v(true, false);
      break;
    case Collective::alltoallv:
      // Rank i sends counts[i] units to everybody, so it gets counts[j] of rank j.
      set_v(false, true);
      break;
    case Collective::alltoallw:
      set_v(false, true);
      mix_types(call, rank, sides);
      break;
    default:
      set(1, 1);
      break;
  }
  return sides;
}

}  // namespace torii::clients
