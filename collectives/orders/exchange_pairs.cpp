// SPDX-License-Identifier: Apache-2.0
// Exchange lists made of pairs: two offsets are matched so that one uses the links that the other leaves idle.
//
// An item is v and -v, which together load both directions of every wrapping dimension equally. If nothing wraps, an
// item is v alone, which loads both directions by itself. A pair of items v and w (four messages) loads each direction
// of dimension d with |v_d| + |w_d|. A pair takes as long as the greatest of these loads, so the matching makes the sum
// of the greatest loads small.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>
#include <utility>

#include "collectives/orders/exchange_parts.hpp"

namespace torii {
namespace {

struct Item {
  Coordinates steps;
  Coordinates loads;  ///< by dimension: the load of each direction
};

using Pairs = std::vector<std::pair<int, int>>;  // indices of items; -1: no item

int extent_distance(int extent, int steps) { return std::min(std::abs(steps), extent - std::abs(steps)); }

bool is_own_inverse(const ExchangeShape& shape, const Coordinates& steps) {
  for (std::size_t d = 0; d < 3; ++d) {
    if (2 * steps[d] % shape.extents[d] != 0) return false;
  }
  return true;
}

/// Selects one of v and -v: the one that is smaller, modulo the extents, in the first coordinate in which they differ.
bool stands_for_both(const ExchangeShape& shape, const Coordinates& steps) {
  for (std::size_t d = 0; d < 3; ++d) {
    const int up = (steps[d] + shape.extents[d]) % shape.extents[d];
    const int down = (shape.extents[d] - steps[d]) % shape.extents[d];
    if (up != down) return up < down;
  }
  return false;
}

std::vector<Item> items_of(const ExchangeShape& shape) {
  std::vector<Item> items;
  const bool wraps = !shape.wraps_nowhere();
  for (const ExchangeOffset& offset : counted_offsets(shape.extents, shape.wraps)) {
    const Coordinates& v = offset.steps;
    if (wraps && (is_own_inverse(shape, v) || !stands_for_both(shape, v))) continue;
    Item item{v, {0, 0, 0}};
    for (std::size_t d = 0; d < 3; ++d) {
      // In a dimension that does not wrap, each of the two messages of an item loads both directions.
      item.loads[d] = extent_distance(shape.extents[d], v[d]) * (wraps && !shape.wraps[d] ? 2 : 1);
    }
    items.push_back(item);
  }
  return items;
}

/// Four times the time of a pair, plus how much earlier than the pair each item ends: an early end disturbs the next
/// pair.
int cost_of(const Item& a, const Item& b) {
  int most = 0;
  int slowest_a = 0;
  int slowest_b = 0;
  for (std::size_t d = 0; d < 3; ++d) {
    const int load = a.loads[d] + b.loads[d];
    most = std::max(most, load);
    if (a.loads[d] > 0) slowest_a = std::max(slowest_a, load);
    if (b.loads[d] > 0) slowest_b = std::max(slowest_b, load);
  }
  return 4 * most + (most - slowest_a) + (most - slowest_b);
}

/// Pairs v with w = half the extents - v: for every v, the two load every direction with half its extent. Items for
/// which w equals v are paired with each other.
Pairs match_halves(const ExchangeShape& shape, const std::vector<Item>& items) {
  const auto number = [&](const Coordinates& steps) {
    Coordinates at = steps;
    for (std::size_t d = 0; d < 3; ++d) at[d] = (at[d] % shape.extents[d] + shape.extents[d]) % shape.extents[d];
    return static_cast<std::size_t>(at[0] + shape.extents[0] * (at[1] + shape.extents[1] * at[2]));
  };
  std::vector<int> item_at(static_cast<std::size_t>(shape.nodes()), -1);
  for (std::size_t i = 0; i < items.size(); ++i) {
    item_at[number(items[i].steps)] = static_cast<int>(i);
    item_at[number(negative(items[i].steps))] = static_cast<int>(i);
  }
  Pairs pairs;
  int waiting = -1;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Coordinates& v = items[i].steps;
    Coordinates w = {0, 0, 0};
    for (std::size_t d = 0; d < 3; ++d) w[d] = shape.extents[d] / 2 - v[d];
    const int item = static_cast<int>(i);
    const int partner = item_at[number(w)];
    if (partner > item) pairs.emplace_back(item, partner);
    if (partner != item) continue;
    if (waiting >= 0) pairs.emplace_back(waiting, item);
    waiting = waiting >= 0 ? -1 : item;
  }
  if (waiting >= 0) pairs.emplace_back(waiting, -1);
  return pairs;
}

/// Pairs the longest item with the shortest and so on, then swaps partners of random pairs if that costs no more.
Pairs match(const std::vector<Item>& items, std::uint64_t seed) {
  const int count = static_cast<int>(items.size());
  const auto cost = [&](int a, int b) {
    const Item none{{0, 0, 0}, {0, 0, 0}};
    return cost_of(a < 0 ? none : items[static_cast<std::size_t>(a)],
                   b < 0 ? none : items[static_cast<std::size_t>(b)]);
  };
  std::vector<int> order(items.size());
  for (int i = 0; i < count; ++i) order[static_cast<std::size_t>(i)] = i;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return cost(a, -1) > cost(b, -1); });
  if (count % 2 == 1) order.push_back(-1);
  Pairs pairs;
  for (std::size_t i = 0; 2 * i < order.size(); ++i) pairs.emplace_back(order[i], order[order.size() - 1 - i]);
  std::mt19937_64 random(seed);
  const std::size_t steps = pairs.size() < 2 ? 0 : std::min<std::size_t>(400 * pairs.size(), 2'000'000);
  for (std::size_t step = 0; step < steps; ++step) {
    auto& [a, b] = pairs[random() % pairs.size()];
    auto& [c, d] = pairs[random() % pairs.size()];
    if (a == c) continue;
    if (random() % 2 == 0) std::swap(c, d);
    if (cost(a, c) + cost(b, d) <= cost(a, b) + cost(c, d)) std::swap(b, c);
  }
  return pairs;
}

/// The offsets that are their own inverses; there are 0, 1, 3 or 7. Each loads one direction only, so they are listed
/// in pairs whose sum is half of all extents, alternately along + and along -.
ExchangeOffsets own_inverses(const ExchangeShape& shape) {
  Coordinates half = {0, 0, 0};
  std::vector<std::size_t> even;
  for (std::size_t d = 0; d < 3; ++d) {
    if (shape.extents[d] % 2 != 0) continue;
    half[d] = shape.extents[d] / 2;
    even.push_back(d);
  }
  if (even.empty()) return {};
  if (even.size() == 1) return {{half, 0, true}};
  ExchangeOffsets offsets;
  int sign = 1;
  for (std::size_t i = 0; i < even.size(); ++i) {
    const std::size_t d = even[i];
    Coordinates one = {0, 0, 0};
    one[d] = sign * half[d];
    offsets.push_back({one});
    if (even.size() == 2) continue;
    Coordinates others = {sign * half[0], sign * half[1], sign * half[2]};
    others[d] = 0;
    offsets.push_back({others});
    sign = -sign;
  }
  offsets.push_back({negative(half)});
  return offsets;
}

}  // namespace

ExchangeOffsets paired_offsets(const ExchangeShape& shape, std::uint64_t seed) {
  const std::vector<Item> items = items_of(shape);
  const bool wraps = !shape.wraps_nowhere();
  Pairs pairs = seed == 0 ? match_halves(shape, items) : match(items, seed);
  const auto load = [&](const std::pair<int, int>& pair) {
    Coordinates loads = {0, 0, 0};
    for (const int item : {pair.first, pair.second}) {
      for (std::size_t d = 0; item >= 0 && d < 3; ++d) loads[d] += items[static_cast<std::size_t>(item)].loads[d];
    }
    return *std::max_element(loads.begin(), loads.end());
  };
  // Pairs that take equally long are adjacent; an item without a partner comes last.
  std::stable_sort(pairs.begin(), pairs.end(), [&](const auto& a, const auto& b) {
    const bool lone_a = std::min(a.first, a.second) < 0;
    const bool lone_b = std::min(b.first, b.second) < 0;
    return lone_a != lone_b ? lone_b : load(a) > load(b);
  });
  ExchangeOffsets offsets;
  for (const auto& [a, b] : pairs) {
    for (const int item : {a, b}) {
      if (item < 0) continue;
      const Coordinates& steps = items[static_cast<std::size_t>(item)].steps;
      offsets.push_back({steps});
      if (wraps) offsets.push_back({negative(steps)});
    }
  }
  if (wraps) {
    for (const ExchangeOffset& offset : own_inverses(shape)) offsets.push_back(offset);
  }
  return offsets;
}

}  // namespace torii
