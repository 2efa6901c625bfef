// SPDX-License-Identifier: Apache-2.0
// Exchange lists of three dimensions, and of two of which one wraps. The network model simulates a few candidate
// orders, and a bounded search improves the best one. Bounds count steps and seeds are fixed, so every rank finds the
// same list.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <random>
#include <utility>

#include "collectives/orders/exchange_parts.hpp"

namespace torii {
namespace {

/// The most messages that may be simulated for one list, some 20 ms. If the ranks send differently, rates change with
/// every message, so each message counts kUnlikeCost times.
constexpr std::int64_t kMessagesMost = 120'000;
constexpr std::int64_t kUnlikeCost = 8;
constexpr std::uint64_t kSeeds = 4;
/// A list whose time over the bound is no more than this needs no further search.
constexpr double kBest = 1 + 1e-9;

/// The set of offsets, modulo the extents, that are in the list.
class Taken {
 public:
  explicit Taken(int extent) : extent_(extent), taken_(static_cast<std::size_t>(extent * extent * extent), false) {}
  /// Whether the offset was new.
  bool take(const Coordinates& steps) {
    std::size_t number = 0;
    for (const int step : steps) {
      number = number * static_cast<std::size_t>(extent_) + static_cast<std::size_t>((step + extent_) % extent_);
    }
    const bool is_new = !taken_[number];
    taken_[number] = true;
    return is_new;
  }

 private:
  int extent_;
  std::vector<bool> taken_;
};

Coordinates turned(const Coordinates& v) { return {v[2], v[0], v[1]}; }
bool is_diagonal(const Coordinates& v) { return v[0] == v[1] && v[1] == v[2]; }

/// For a torus cube and six controllers: v = (a,b,c), its rotations about the diagonal, and their negatives load every
/// direction with |a| + |b| + |c|. The seven offsets that are their own negatives and the diagonal come last.
ExchangeOffsets cube_torus_offsets(int extent) {
  ExchangeOffsets offsets;
  Taken taken(extent);
  const auto send = [&](const Coordinates& v) {
    if (taken.take(v)) offsets.push_back({v});
  };
  const int m = extent / 2;
  ExchangeOffsets tail;
  if (extent % 2 == 0) {
    for (const Coordinates& v :
         {Coordinates{-m, -m, 0}, Coordinates{0, -m, -m}, Coordinates{-m, 0, -m}, Coordinates{m, 0, 0},
          Coordinates{0, m, 0}, Coordinates{0, 0, m}, Coordinates{m, m, m}}) {
      taken.take(v);
      tail.push_back({v});
    }
  }
  for (const ExchangeOffset& offset : counted_offsets({extent, extent, extent}, {true, true, true})) {
    const Coordinates& v = offset.steps;
    if (is_diagonal(v)) continue;
    for (const Coordinates& w : {v, turned(v), turned(turned(v))}) {
      send(w);
      send(negative(w));
    }
  }
  offsets.insert(offsets.end(), tail.begin(), tail.end());
  for (int i = 1; i <= (extent - 1) / 2; ++i) {
    offsets.push_back({{i, i, i}});
    offsets.push_back({{-i, -i, -i}});
  }
  return offsets;
}

/// For a mesh cube: v and its rotations about the diagonal load all directions equally. The diagonal comes last,
/// because an offset that equals its rotations would separate the groups of three.
ExchangeOffsets cube_mesh_offsets(int extent) {
  ExchangeOffsets offsets;
  Taken taken(extent);
  for (const ExchangeOffset& offset : counted_offsets({extent, extent, extent}, {false, false, false})) {
    if (is_diagonal(offset.steps)) continue;
    for (const Coordinates& w : {offset.steps, turned(offset.steps), turned(turned(offset.steps))}) {
      if (taken.take(w)) offsets.push_back({w});
    }
  }
  for (int i = 1; i < extent; ++i) offsets.push_back({{i, i, i}});
  return offsets;
}

using Maker = std::function<ExchangeOffsets()>;

/// The candidate orders, the most promising first.
std::vector<Maker> candidates(const ExchangeShape& shape, int controllers) {
  std::vector<Maker> makers;
  const int extent = shape.extents[0];
  const bool is_torus = shape.wraps_everywhere();
  const bool is_mesh = shape.wraps_nowhere();
  const bool is_even = shape.dimensions == 3 && is_torus &&
                       std::all_of(shape.extents.begin(), shape.extents.end(), [](int one) { return one % 2 == 0; });
  if (shape.is_cube() && is_torus && controllers >= 6) makers.push_back([=] { return cube_torus_offsets(extent); });
  if (shape.is_cube() && is_mesh && controllers % 3 == 0) makers.push_back([=] { return cube_mesh_offsets(extent); });
  if (is_even) makers.push_back([&] { return paired_offsets(shape, 0); });
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    makers.push_back([&shape, seed] { return paired_offsets(shape, seed); });
  }
  makers.push_back([&] { return counted_offsets(shape.extents, shape.wraps); });
  return makers;
}

/// Simulates lists until kMessagesMost messages are used up.
class Judge {
 public:
  Judge(const ExchangeShape& shape, int controllers)
      : topology_(Topology::torus(shape.extents, shape.wraps)), bound_(alltoall_bound(topology_)) {
    run_.controllers = controllers;
  }

  /// The time divided by the bound, for the kind of sharing that gives the longer time. Infinite if is_over().
  double judge(const ExchangeOffsets& offsets) {
    const ExchangeList list{offsets.size(), offsets};
    const ExchangeTraffic traffic = exchange_traffic(topology_, list);
    const std::int64_t ranks = static_cast<std::int64_t>(traffic.period[0]) * traffic.period[1] * traffic.period[2];
    left_ -= 2 * ranks * static_cast<std::int64_t>(offsets.size()) * (ranks > 2 ? kUnlikeCost : 1);
    if (is_over()) return HUGE_VAL;
    double worst = 0;
    for (const Sharing sharing : {Sharing::min, Sharing::maxmin}) {
      run_.sharing = sharing;
      worst = std::max(worst, simulate_exchange(topology_, traffic, run_).time / bound_);
    }
    return worst;
  }
  bool is_over() const { return left_ < 0; }

 private:
  Topology topology_;
  double bound_;
  ExchangeRun run_;
  std::int64_t left_ = kMessagesMost;
};

/// One small change: swaps two transfers, moves one, or reverses ties of one.
void change(ExchangeOffsets& offsets, const ExchangeShape& shape, std::mt19937_64& random) {
  const auto any = [&] { return static_cast<std::ptrdiff_t>(random() % offsets.size()); };
  const std::ptrdiff_t one = any();
  const std::ptrdiff_t other = any();
  const auto begin = offsets.begin();
  switch (random() % 4) {
    case 0:
      for (std::size_t d = 0; d < 3; ++d) {
        int& steps = begin[one].steps[d];
        if (2 * std::abs(steps) == shape.extents[d] && random() % 2 == 0) steps = -steps;
      }
      break;
    case 1:
      if (one < other) std::rotate(begin + one, begin + one + 1, begin + other + 1);
      if (one > other) std::rotate(begin + other, begin + one, begin + one + 1);
      break;
    default:
      std::swap(begin[one], begin[other]);
  }
}

}  // namespace

ExchangeOffsets box_offsets(const ExchangeShape& shape, int controllers) {
  Judge judge(shape, controllers);
  ExchangeOffsets best;
  double least = HUGE_VAL;
  // The first candidate is the result if the budget does not even suffice to simulate that one.
  for (const Maker& make : candidates(shape, controllers)) {
    ExchangeOffsets list = make();
    const double time = judge.judge(list);
    if (best.empty() || time < least) {
      least = time;
      best = std::move(list);
    }
    if (judge.is_over()) break;
  }
  std::mt19937_64 random(1);
  while (least > kBest && !judge.is_over()) {
    ExchangeOffsets changed = best;
    change(changed, shape, random);
    const double time = judge.judge(changed);
    if (time > least || judge.is_over()) continue;
    least = time;
    best = std::move(changed);
  }
  return best;
}

}  // namespace torii
