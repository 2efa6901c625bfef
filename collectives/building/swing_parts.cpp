// SPDX-License-Identifier: Apache-2.0
// The distances and the order of blocks of the swing algorithm.
#include "collectives/building/swing_parts.hpp"

#include <algorithm>

namespace torii {
namespace {

/// Extents along which members meet: of the torus, or of one ring of the whole core.
std::vector<int> extents_of(const Topology& topology, bool by_dimensions, int core_size) {
  if (!by_dimensions) return {core_size};
  const Coordinates& extents = topology.extents();
  return {extents.begin(), extents.end()};
}

/// sum of (-2)^i for i = 0 .. level: 1, -1, 3, -5, 11, ...
int distance_at(int level) {
  int sum = 0;
  for (int i = 0, term = 1; i <= level; ++i, term *= -2) sum += term;
  return sum;
}

}  // namespace

bool swings_by_dimensions(const Topology& topology) {
  if (topology.kind() != Topology::Kind::torus || topology.per_node() != 1) return false;
  return std::ranges::all_of(topology.extents(),
                             [](int extent) { return std::has_single_bit(static_cast<unsigned>(extent)); });
}

int swing_parts(const Topology& topology) {
  if (topology.kind() != Topology::Kind::torus || topology.ranks() == 1) return 1;
  if (!swings_by_dimensions(topology)) return 2;
  const auto dimensions = std::ranges::count_if(topology.extents(), [](int extent) { return extent > 1; });
  return 2 * static_cast<int>(dimensions);
}

SwingPart::SwingPart(const Topology& topology, int number)
    : topology_(topology), by_dimensions_(swings_by_dimensions(topology)), core_(topology.ranks()) {
  std::vector<int> dimensions;
  const std::vector<int> extents = extents_of(topology, by_dimensions_, core_.size());
  for (int d = 0; d < static_cast<int>(extents.size()); ++d) {
    if (extents[static_cast<std::size_t>(d)] > 1) dimensions.push_back(d);
  }
  if (dimensions.empty()) return;
  // Parts 2i and 2i + 1 begin with the i-th dimension and are mirror images. A dimension that is used up is left out.
  std::rotate(dimensions.begin(), dimensions.begin() + number / 2, dimensions.end());
  for (int level = 0; static_cast<int>(steps_.size()) < core_.stages(); ++level) {
    for (const int d : dimensions) {
      if (1 << level >= extents[static_cast<std::size_t>(d)]) continue;
      steps_.push_back({d, number % 2 == 0 ? distance_at(level) : -distance_at(level)});
    }
  }
}

int SwingPart::peer(int member, int step) const {
  const Step& how = steps_[static_cast<std::size_t>(step)];
  const auto swung = [&](int place, int extent) {
    const int to = place % 2 == 0 ? place + how.distance : place - how.distance;
    return (to % extent + extent) % extent;
  };
  if (!by_dimensions_) return swung(member, core_.size());
  const auto d = static_cast<std::size_t>(how.dimension);
  Coordinates at = topology_.coordinates(member);
  at[d] = swung(at[d], topology_.extents()[d]);
  return topology_.rank(at);
}

void SwingPart::append_held(int member, int step, std::vector<int>& blocks) const {
  blocks.push_back(member);
  for (int next = step; next < steps(); ++next) append_held(peer(member, next), next + 1, blocks);
}

std::vector<int> SwingPart::held(int member, int step) const {
  std::vector<int> blocks;
  append_held(member, step, blocks);
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

}  // namespace torii
