// SPDX-License-Identifier: Apache-2.0
// Rings and orders of the bucket algorithm.
#include "collectives/building/bucket_parts.hpp"

#include <algorithm>

#include "runtime/base/index.hpp"

namespace torii {
namespace {

/// A line of cables is a ring when it is folded: coordinates 0, 2, 4, ... and back over ..., 3, 1.
int folded_position(int coordinate, int extent) {
  return coordinate % 2 == 0 ? coordinate / 2 : extent - (coordinate + 1) / 2;
}
int folded_coordinate(int position, int extent) {
  return position < (extent + 1) / 2 ? 2 * position : 2 * (extent - position) - 1;
}

}  // namespace

int bucket_dimensions(const Topology& torus) {
  const Coordinates& extents = torus.extents();
  return static_cast<int>(std::count_if(extents.begin(), extents.end(), [](int extent) { return extent > 1; }));
}

int bucket_parts(const Topology& torus) { return std::max(1, 2 * bucket_dimensions(torus)); }

BucketPart::BucketPart(const Topology& torus, int number)
    : torus_(torus), phases_(bucket_dimensions(torus)), is_backwards_(number % 2 != 0) {
  int counted = 0;
  for (int dimension = 0; dimension < 3; ++dimension) {
    const int extent = torus.extents()[index(dimension)];
    if (extent == 1) continue;
    const std::size_t phase = index((counted++ + phases_ - number / 2) % phases_);
    dimensions_[phase] = dimension;
    extents_[phase] = extent;
  }
}

Coordinates BucketPart::positions(int node) const {
  const Coordinates at = torus_.coordinates(node);
  Coordinates result = {0, 0, 0};
  for (std::size_t phase = 0; phase < index(phases_); ++phase) {
    const int coordinate = at[index(dimensions_[phase])];
    const int extent = extents_[phase];
    const int position = torus_.wraps(dimensions_[phase]) ? coordinate : folded_position(coordinate, extent);
    result[phase] = is_backwards_ ? (extent - position) % extent : position;
  }
  return result;
}

int BucketPart::node(const Coordinates& positions) const {
  Coordinates at = {0, 0, 0};
  for (std::size_t phase = 0; phase < index(phases_); ++phase) {
    const int extent = extents_[phase];
    const int position = is_backwards_ ? (extent - positions[phase]) % extent : positions[phase];
    at[index(dimensions_[phase])] = torus_.wraps(dimensions_[phase]) ? position : folded_coordinate(position, extent);
  }
  return torus_.rank(at);
}

int BucketPart::along(int node, int phase, int steps) const {
  Coordinates at = positions(node);
  const int extent = this->extent(phase);
  at[index(phase)] = ((at[index(phase)] + steps) % extent + extent) % extent;
  return this->node(at);
}

BucketOrder::BucketOrder(const BucketPart& part, int group_most) : elements_(index(part.phases()) + 1) {
  elements_.back() = {0};
  for (int phase = part.phases() - 1; phase >= 0; --phase) {
    const std::vector<int>& below = elements_[index(phase) + 1];
    const int size = static_cast<int>(below.size());
    for (int first = 0; first < size; first += group_most) {
      const int end = std::min(first + group_most, size);
      for (int round = 0; round < part.extent(phase); ++round) {
        for (int i = first; i < end; ++i) elements_[index(phase)].push_back(round * size + below[index(i)]);
      }
    }
  }
}

int bucket_slots(const Topology& torus, int group_most, bool has_sums) {
  const int dimensions = bucket_dimensions(torus);
  int slots = 1;
  for (const int extent : torus.extents()) {
    if (extent == 1) continue;
    const int group = std::min(group_most, torus.ranks() / extent);
    const int on_two = has_sums ? group : std::min(group, dimensions - 1);
    slots = std::max(slots, extent > 2 ? group + 1 : on_two);
  }
  return slots;
}

}  // namespace torii
