// SPDX-License-Identifier: Apache-2.0
// The hops by which floyd's blocks travel: the digits of the distance that a block has to go.
#pragma once

#include <vector>

namespace torii {

/// Ways are numbered 1 .. ranks-1: the distance from a block's sender to its receiver. The same for all ranks.
class FloydHops {
 public:
  /// A digit of a value: ranks send over `distance` the blocks of all `ways` that have it, in this order.
  struct Hop {
    int number;    ///< in the order of digits, then of values
    int round;     ///< which digit; the hops of a round do not wait for each other
    int weight;    ///< radix^round
    int distance;  ///< value x weight
    std::vector<int> ways;
  };

  /// `ranks` >= 1, `radix` >= 2.
  FloydHops(int ranks, int radix);

  int ranks() const { return ranks_; }
  int rounds() const { return all_.empty() ? 0 : all_.back().round + 1; }
  const std::vector<Hop>& all() const { return all_; }
  /// Blocks that every rank sends, all hops together.
  long long blocks() const;

  /// The rank at a distance from `rank`, and the one from which it is at that distance.
  int to(int rank, int distance) const { return by_bits_ ? rank ^ distance : (rank + distance) % ranks_; }
  int from(int rank, int distance) const {
    return by_bits_ ? rank ^ distance : (rank - distance % ranks_ + ranks_) % ranks_;
  }
  /// How far a block of this way has gone before the hop.
  int gone_before(int way, const Hop& hop) const { return way % hop.weight; }
  /// Whether the hop is the last one of this way.
  bool ends_with(int way, const Hop& hop) const { return way / hop.weight < radix_; }

 private:
  bool leaves_before(int a, int b, const Hop& hop) const;

  int ranks_;
  int radix_;
  bool by_bits_;
  std::vector<Hop> all_;
};

}  // namespace torii
