// SPDX-License-Identifier: Apache-2.0
// The partners of the swing algorithm, and the order of blocks. Pure arithmetic.
#pragma once

#include <vector>

#include "collectives/building/butterfly.hpp"

namespace torii {

/// How many parts the vector is divided into: on a torus two for each dimension that has links, one for each direction;
/// elsewhere one.
int swing_parts(const Topology& topology);
/// Whether ranks meet along the dimensions: every extent is a power of two, and every node has one rank. Otherwise the
/// core of 2^k ranks meets as on a ring, in rank order.
bool swings_by_dimensions(const Topology& topology);

/// One part of the vector. Members of the core are numbered from 0 to size() - 1. The numbers are by rank if ranks meet
/// along the dimensions, otherwise by their place in the Butterfly's core.
class SwingPart {
 public:
  SwingPart(const Topology& topology, int number);

  int size() const { return core_.size(); }
  int steps() const { return static_cast<int>(steps_.size()); }
  const Butterfly& core() const { return core_; }
  /// The member with which `member` exchanges at `step`: at distance 1, 1, 3, 5, 11, ... along a dimension, to and fro.
  int peer(int member, int step) const;
  /// The blocks that `member` combines from `step` on: those that it leaves to others at later steps, and its own. Of
  /// the gather, which goes the steps backwards: the blocks that it has before `step` - 1. Ascending.
  std::vector<int> held(int member, int step) const;
  /// How many blocks are exchanged at `step`, in the reduction and in the gather.
  int blocks_at(int step) const { return size() >> (step + 1); }

 private:
  struct Step {
    int dimension;
    int distance;  ///< signed, of members at even coordinates; the others go the other way
  };
  void append_held(int member, int step, std::vector<int>& blocks) const;

  const Topology topology_;
  const bool by_dimensions_;
  const Butterfly core_;
  std::vector<Step> steps_;
};

}  // namespace torii
