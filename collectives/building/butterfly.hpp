// SPDX-License-Identifier: Apache-2.0
// The core of 2^k ranks on which recursive doubling and Rabenseifner's algorithm run, whatever the number of ranks.
#pragma once

#include <bit>

#include "collectives/building/plan_builder.hpp"

namespace torii {

/// With P = 2^k + rem ranks, each of the first rem pairs (2i, 2i+1) sends one member into the core. That member
/// combines both operands first and sends the result back at the end. Neighbours pair up, so the order of ranks is
/// kept.
class Butterfly {
 public:
  /// `preferred` is the member of its pair that goes into the core; the lower one of every other pair does.
  explicit Butterfly(int ranks, int preferred = -1)
      : preferred_(preferred),
        size_(static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)))),
        rem_(ranks - size_) {}

  int size() const { return size_; }
  int stages() const { return std::countr_zero(static_cast<unsigned>(size_)); }
  /// The place in the core of this rank, or of the pair that it belongs to.
  int index(int rank) const { return rank < 2 * rem_ ? rank / 2 : rank - rem_; }
  bool in_core(int rank) const { return this->rank(index(rank)) == rank; }
  /// The rank at a place of the core.
  int rank(int index) const {
    if (index >= rem_) return index + rem_;
    return 2 * index == preferred_ - 1 ? preferred_ : 2 * index;
  }
  /// The other member of a rank's pair, or -1.
  int pair_of(int rank) const { return rank < 2 * rem_ ? rank ^ 1 : -1; }
  /// The rank with which the one at `index` exchanges at `stage`.
  int partner(int index, int stage) const { return rank(index ^ (1 << stage)); }

  /// The order of operands for every block: pairs first, then neighbours, then groups of two, four, ...
  static ExpressionId order(const PlanRequest& request, int, ExpressionPool& pool) {
    const Butterfly core(request.topology.ranks());
    std::vector<ExpressionId> values;
    for (int index = 0; index < core.size(); ++index) {
      const int rank = core.rank(index);
      values.push_back(pool.leaf(rank));
      if (core.pair_of(rank) < 0) continue;
      const ExpressionId operands[] = {values.back(), pool.leaf(rank + 1)};
      values.back() = pool.fold(operands, !request.wide_wire);
    }
    while (values.size() > 1) {
      const std::size_t half = values.size() / 2;
      for (std::size_t i = 0; i < half; ++i) {
        const ExpressionId operands[] = {values[2 * i], values[2 * i + 1]};
        values[i] = pool.fold(operands, !request.wide_wire);
      }
      values.resize(half);
    }
    return pool.rounded(values.front());
  }

 private:
  int preferred_;
  int size_;
  int rem_;
};

}  // namespace torii
