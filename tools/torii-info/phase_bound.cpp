// SPDX-License-Identifier: Apache-2.0
// Floyd's potential over the piles that ranks have for each other.
//
// A pile of n items that one rank has for another has the potential n log2 n. A phase that merges a items of rank c and
// b items of rank d for one receiver gains at most a + b, the gain of two equal piles; splitting a pile gains nothing.
// So a phase gains at most the number of items of the ranks that exchange in it, however ranks are paired.
//
// Source: R. W. Floyd, Permuting Information in Idealized Two-Level Storage, 1972; A. Tsukada, T. Tsuda, Optimizing
// Data Permutation on Highly Parallel Computers (in Japanese), section 3, theorems 1 to 3.
#include "tools/torii-info/phase_bound.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "runtime/base/status.hpp"
#include "runtime/plan/balanced_split.hpp"

namespace torii {
namespace {

double potential(std::uint64_t items) {
  return items == 0 ? 0 : static_cast<double>(items) * std::log2(static_cast<double>(items));
}

/// The least number of phases after which one rank can have data of `ranks` ranks, itself included.
int phases_to_reach(int ranks) { return std::bit_width(static_cast<unsigned>(ranks - 1)); }

}  // namespace

std::string_view name(PhaseKind kind) noexcept { return kind == PhaseKind::pairs ? "pairs" : "rounds"; }

PhaseBound phase_bound(std::span<const std::uint64_t> holdings, int ranks, PhaseKind kind) {
  const auto all = static_cast<std::size_t>(std::max(ranks, 0));
  if (ranks < 1 || holdings.size() != all * all) {
    throw Error(Status::invalid_argument, "there are " + std::to_string(holdings.size()) + " piles of " +
                                              std::to_string(ranks) + " ranks; there must be ranks * ranks");
  }
  PhaseBound bound;
  std::vector<std::uint64_t> held(all, 0);
  std::vector<std::uint64_t> wanted(all, 0);
  for (std::size_t from = 0; from < all; ++from) {
    int receivers = 1;
    int senders = 1;
    for (std::size_t to = 0; to < all; ++to) {
      const std::uint64_t pile = holdings[from * all + to];
      held[from] += pile;
      wanted[to] += pile;
      bound.potential_before += potential(pile);
      if (from == to) continue;
      receivers += pile != 0 ? 1 : 0;
      senders += holdings[to * all + from] != 0 ? 1 : 0;
    }
    bound.by_reach = std::max(bound.by_reach, phases_to_reach(std::max(receivers, senders)));
  }
  std::uint64_t items = 0;
  std::uint64_t held_least = held[0];
  for (std::size_t rank = 0; rank < all; ++rank) {
    bound.potential_after += potential(wanted[rank]);
    items += held[rank];
    held_least = std::min(held_least, held[rank]);
  }
  // A rank without a partner may have sent its items away before, so this is valid only if all ranks always have
  // equally many items.
  const bool is_even = std::ranges::all_of(held, [&](std::uint64_t one) { return one == held_least; });
  const bool leaves_one = kind == PhaseKind::pairs && ranks % 2 != 0 && is_even;
  bound.gain_most = static_cast<double>(items - (leaves_one ? held_least : 0));
  // Sums of logarithms are inexact in their last digits; a whole number must not become the next one.
  constexpr double kRounding = 1e-9;
  const double gain = bound.potential_after - bound.potential_before;
  if (bound.gain_most > 0) {
    bound.by_potential = static_cast<int>(std::ceil(std::max(0.0, gain) / bound.gain_most - kRounding));
  }
  bound.least = std::max(bound.by_potential, bound.by_reach);
  return bound;
}

Holdings transpose_holdings(std::size_t rows, std::size_t columns, int ranks) {
  Holdings holdings;
  for (int from = 0; from < ranks; ++from) {
    const std::size_t own_rows = balanced_split(rows, ranks, from).count;
    for (int to = 0; to < ranks; ++to) holdings.push_back(own_rows * balanced_split(columns, ranks, to).count);
  }
  return holdings;
}

Holdings permutation_holdings(std::span<const std::uint64_t> destinations, int ranks) {
  const auto all = static_cast<std::size_t>(ranks);
  const auto rank_of = [&](std::size_t position) {
    const std::size_t each = destinations.size() / all;
    const std::size_t more = destinations.size() % all;
    const std::size_t in_longer = more * (each + 1);
    return position < in_longer ? position / (each + 1) : more + (position - in_longer) / each;
  };
  Holdings holdings(all * all, 0);
  std::vector<bool> taken(destinations.size(), false);
  for (std::size_t item = 0; item < destinations.size(); ++item) {
    const std::uint64_t to = destinations[item];
    if (to >= destinations.size() || taken[to]) {
      throw Error(Status::invalid_argument, "destinations[" + std::to_string(item) + "] is " + std::to_string(to) +
                                                "; they must hold each number from 0 to " +
                                                std::to_string(destinations.size() - 1) + " once");
    }
    taken[to] = true;
    ++holdings[rank_of(item) * all + rank_of(to)];
  }
  return holdings;
}

}  // namespace torii
