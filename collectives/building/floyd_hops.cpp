// SPDX-License-Identifier: Apache-2.0
// Digits, and the order of blocks within a bundle.
#include "collectives/building/floyd_hops.hpp"

#include <algorithm>
#include <bit>

namespace torii {

FloydHops::FloydHops(int ranks, int radix)
    : ranks_(ranks),
      radix_(std::min(radix, std::max(ranks, 2))),
      by_bits_(std::has_single_bit(static_cast<unsigned>(ranks_)) &&
               std::has_single_bit(static_cast<unsigned>(radix_))) {
  int round = 0;
  for (long long weight = 1; weight < ranks; weight *= radix_, ++round) {
    for (int value = 1; value < radix_ && value * weight < ranks; ++value) {
      const int number = static_cast<int>(all_.size());
      Hop hop = {number, round, static_cast<int>(weight), static_cast<int>(value * weight), {}};
      for (int way = 1; way < ranks; ++way) {
        if (way / weight % radix_ == value) hop.ways.push_back(way);
      }
      std::sort(hop.ways.begin(), hop.ways.end(), [&](int a, int b) { return leaves_before(a, b, hop); });
      all_.push_back(std::move(hop));
    }
  }
}

long long FloydHops::blocks() const {
  long long blocks = 0;
  for (const Hop& hop : all_) blocks += static_cast<long long>(hop.ways.size());
  return blocks;
}

/// A bundle's slot is free when its last block has been taken out. So blocks are in the order in which they are
/// forwarded: by their next hop, then by the hop after it, and so on. Blocks that have arrived are taken at the end.
/// Then any two blocks are in the same order in every bundle that has both, and so are taken in that order.
bool FloydHops::leaves_before(int a, int b, const Hop& hop) const {
  int rest_a = a / hop.weight / radix_;
  int rest_b = b / hop.weight / radix_;
  while (rest_a != rest_b) {
    if (rest_a == 0 || rest_b == 0) return rest_b == 0;
    const int digit_a = rest_a % radix_;
    const int digit_b = rest_b % radix_;
    if (digit_a != digit_b) {
      if (digit_a == 0 || digit_b == 0) return digit_b == 0;
      return digit_a < digit_b;
    }
    rest_a /= radix_;
    rest_b /= radix_;
  }
  return a < b;
}

}  // namespace torii
