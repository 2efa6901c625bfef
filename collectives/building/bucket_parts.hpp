// SPDX-License-Identifier: Apache-2.0
// The paths of the parts of a vector in the bucket algorithm: the rings of each part, and the order in which its blocks
// go round them. Pure arithmetic.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "runtime/topology/topology.hpp"

namespace torii {

/// The number of dimensions whose extent is not 1, and of parts: one per dimension to begin with and direction. A
/// single node has one part, which goes nowhere.
int bucket_dimensions(const Topology& torus);
int bucket_parts(const Topology& torus);

/// One part: it goes round a ring along one dimension, then along the next, in a circle through all dimensions, always
/// in one direction. The ring of a dimension that does not wrap is folded: away over the even coordinates, back over
/// the odd ones. So it crosses each cable once each way.
class BucketPart {
 public:
  /// Parts 2i and 2i + 1 begin with the i-th dimension that counts and go upwards and downwards.
  BucketPart(const Topology& torus, int number);

  int phases() const noexcept { return phases_; }
  int extent(int phase) const noexcept { return extents_[static_cast<std::size_t>(phase)]; }
  /// Positions of a node on its ring of each phase: 0 .. extent-1 along the way of the part.
  Coordinates positions(int node) const;
  int node(const Coordinates& positions) const;
  /// The node `steps` further along the ring of a phase.
  int along(int node, int phase, int steps) const;

 private:
  Topology torus_;
  int phases_ = 0;
  bool is_backwards_ = false;
  Coordinates dimensions_ = {0, 0, 0};  ///< by phase
  Coordinates extents_ = {1, 1, 1};     ///< by phase
};

/// The order in which the blocks of one part go round. Phase i of the reduce-scatter handles, at every node, the blocks
/// that end at nodes of equal positions on rings 0 .. i-1: its elements. An element is written as a key with one digit
/// per phase from i on, of base extent(phase). On its ring an element is taken in (or begins) in the round that its
/// first digit names, 0 .. extent-1. The elements of the last round end here. The all-gather is the mirror image: the
/// elements of round 0 are the node's own.
///
/// Rounds of a ring with many blocks need many slots: bucket_slots(). So blocks go round in groups small enough for the
/// slots, one group after the other. Later phases take elements over in the very order in
/// which earlier phases finish them. Every wait is for something earlier in this order, so nothing deadlocks.
class BucketOrder {
 public:
  BucketOrder(const BucketPart& part, int group_most);

  /// The elements of a phase in order; of phase `phases` there is one, 0.
  std::span<const int> elements(int phase) const { return elements_[index(phase)]; }
  /// The number of elements of a phase: the base of the key's part below its first digit is size(phase + 1).
  int size(int phase) const { return static_cast<int>(elements_[index(phase)].size()); }
  int round(int phase, int key) const { return key / size(phase + 1); }
  int last_round(int phase) const { return size(phase) / size(phase + 1) - 1; }

 private:
  static std::size_t index(int value) { return static_cast<std::size_t>(value); }
  std::vector<std::vector<int>> elements_;  ///< by phase
};

/// The slots that groups of at most so many blocks need. On a ring of more than two nodes all send a group before they
/// take any of it, and need a slot more. On a ring of two, sums need a slot for each block of a group; results need one
/// for each other dimension.
int bucket_slots(const Topology& torus, int group_most, bool has_sums);

}  // namespace torii
