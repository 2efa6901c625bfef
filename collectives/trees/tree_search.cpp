// SPDX-License-Identifier: Apache-2.0
// Low edge-disjoint trees of a torus whose roots can be chosen freely, as in an allreduce.
//
//   A seeker is a pair (tree, node); each seeker except the roots needs a cable to its parent. A seeker has a
//   potential, an upper bound of its depth. It may use the cables to neighbours whose potential in the same tree is
//   lower. Potentials start as distances from the root: a complete matching of seekers to cables would give trees of
//   shortest paths. The best matching leaves some seekers without a cable. While it does, one seeker that blocks them
//   is lifted: its potential becomes that of its lowest neighbour of at least equal potential, plus one. The lifted
//   seeker has more cables to choose from; its children that are no longer higher must find another cable.
//
// A parent always has a lower potential, so there are no cycles, and no tree is higher than its highest potential.
// Roots are at thirds of every dimension (at halves for two trees). Matchings: Hopcroft and Karp (1973). Lifting is the
// relabelling of Goldberg and Tarjan (1988). Steps are bounded and the seed is fixed, so all ranks find the same trees.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>

#include "collectives/trees/trees.hpp"
#include "runtime/base/index.hpp"

namespace torii {
namespace {

constexpr int kNone = -1;
/// The most seekers examined in all: some seconds on any torus.
constexpr std::int64_t kWorkMost = std::int64_t{1} << 27;
/// A random amount below this is added to each cost of lifting, so that the search does not repeat itself in a cycle.
constexpr int kHarmless = 20;

class TreeSearch {
 public:
  /// All of `dimensions` wrap; there is one tree for each.
  TreeSearch(const Topology& shape, const std::vector<int>& dimensions)
      : nodes_(shape.ranks()), trees_(static_cast<int>(dimensions.size())), ways_(2 * trees_) {
    for (int node = 0; node < nodes_; ++node) {
      for (const int dimension : dimensions) {
        for (const int direction : {1, -1}) {
          const int to = shape.neighbour(node, dimension, direction);
          neighbours_.push_back({to, cable_id(direction > 0 ? node : to, dimension)});
        }
      }
    }
    for (int tree = 0; tree < trees_; ++tree) {
      Coordinates at = {0, 0, 0};
      for (const int d : dimensions) at[index(d)] = shape.extents()[index(d)] * tree / trees_;
      roots_.push_back(shape.rank(at));
      add_distances(roots_.back());
    }
    distance_most_ = *std::ranges::max_element(potentials_);
    cables_.assign(potentials_.size(), kNone);
    levels_.assign(potentials_.size(), kNone);
    owners_.assign(3 * index(nodes_), kNone);
    is_wanted_.assign(owners_.size(), false);
  }

  /// The trees, or nothing if kWorkMost did not suffice.
  std::optional<std::vector<RootedCables>> find() {
    for (std::int64_t work = 0; work < kWorkMost; work += static_cast<std::int64_t>(potentials_.size())) {
      if (look_for_ways()) {
        for (const int seeker : seekers()) serve(seeker);
      } else if (queue_.empty()) {
        return trees();
      } else if (!lift_one()) {
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

 private:
  struct Neighbour {
    int node;
    CableId cable;
  };

  int node_of(int seeker) const { return seeker % nodes_; }
  bool is_root(int seeker) const { return roots_[index(seeker / nodes_)] == node_of(seeker); }
  /// The seeker of the same tree at another node.
  int at_node(int seeker, int node) const { return seeker - node_of(seeker) + node; }
  const Neighbour* begin_of(int seeker) const { return neighbours_.data() + index(node_of(seeker) * ways_); }
  const Neighbour* end_of(int seeker) const { return begin_of(seeker) + ways_; }
  int potential(int seeker) const { return potentials_[index(seeker)]; }
  bool may_use(int seeker, const Neighbour& to) const {
    return potential(at_node(seeker, to.node)) < potential(seeker);
  }

  void add_distances(int root) {
    std::vector<int> distances(index(nodes_), kNone);
    std::vector<int> reached = {root};
    distances[index(root)] = 0;
    for (std::size_t head = 0; head < reached.size(); ++head) {
      const int node = reached[head];
      for (const Neighbour* to = begin_of(node); to != end_of(node); ++to) {
        if (distances[index(to->node)] != kNone) continue;
        distances[index(to->node)] = distances[index(node)] + 1;
        reached.push_back(to->node);
      }
    }
    potentials_.insert(potentials_.end(), distances.begin(), distances.end());
  }

  /// All seekers without a cable.
  std::vector<int> seekers() const {
    std::vector<int> result;
    for (int seeker = 0; seeker < nodes_ * trees_; ++seeker) {
      if (cables_[index(seeker)] == kNone && !is_root(seeker)) result.push_back(seeker);
    }
    return result;
  }

  /// A breadth-first search from the seekers without a cable, over the seekers that they would displace. Sets levels_;
  /// queue_ holds all seekers found. Returns whether a seeker found may use a cable without an owner.
  bool look_for_ways() {
    std::ranges::fill(levels_, kNone);
    std::fill(is_wanted_.begin(), is_wanted_.end(), false);
    queue_ = seekers();
    for (const int seeker : queue_) levels_[index(seeker)] = 0;
    bool found = false;
    for (std::size_t head = 0; head < queue_.size(); ++head) {
      const int seeker = queue_[head];
      for (const Neighbour* to = begin_of(seeker); to != end_of(seeker); ++to) {
        if (!may_use(seeker, *to)) continue;
        is_wanted_[index(to->cable)] = true;
        const int owner = owners_[index(to->cable)];
        if (owner == kNone) {
          found = true;
        } else if (levels_[index(owner)] == kNone) {
          levels_[index(owner)] = levels_[index(seeker)] + 1;
          queue_.push_back(owner);
        }
      }
    }
    return found;
  }

  /// Gives the seeker a cable, and other cables to the seekers that it displaces: an augmenting path of increasing
  /// levels. Does nothing if there is none.
  void serve(int first) {
    struct Visit {
      int seeker;
      const Neighbour* next;
    };
    std::vector<Visit> path = {{first, begin_of(first)}};
    while (!path.empty()) {
      Visit& visit = path.back();
      if (visit.next == end_of(visit.seeker)) {
        levels_[index(visit.seeker)] = kNone;  // a dead end: not tried again
        path.pop_back();
        continue;
      }
      const Neighbour& to = *visit.next++;
      if (!may_use(visit.seeker, to)) continue;
      const int owner = owners_[index(to.cable)];
      if (owner == kNone) {
        for (const Visit& one : path) own(one.seeker, (one.next - 1)->cable);
        return;
      }
      if (levels_[index(owner)] == levels_[index(visit.seeker)] + 1) path.push_back({owner, begin_of(owner)});
    }
  }

  void own(int seeker, CableId cable) {
    cables_[index(seeker)] = cable;
    owners_[index(cable)] = seeker;
  }

  /// The potential to which a seeker would be lifted; the largest int if all its neighbours are lower.
  int lifted(int seeker) const {
    int least = std::numeric_limits<int>::max();
    for (const Neighbour* to = begin_of(seeker); to != end_of(seeker); ++to) {
      const int other = potential(at_node(seeker, to->node));
      if (other >= potential(seeker)) least = std::min(least, other + 1);
    }
    return least;
  }

  /// The cost of lifting: children that lose their cable, and height. Nothing if lifting gives no cable that the search
  /// has not seen.
  std::optional<int> cost_of_lifting(int seeker, int to_potential) {
    bool gains = false;
    int losing = 0;
    for (const Neighbour* to = begin_of(seeker); to != end_of(seeker); ++to) {
      const int other = at_node(seeker, to->node);
      const bool is_new = potential(other) >= potential(seeker) && potential(other) < to_potential;
      gains = gains || (is_new && !is_wanted_[index(to->cable)]);
      const bool loses = potential(other) > potential(seeker) && potential(other) <= to_potential;
      if (loses && cables_[index(other)] == to->cable) ++losing;
    }
    if (!gains) return std::nullopt;
    constexpr int kLosing = 100;
    constexpr int kHigher = 40;
    return kLosing * losing + kHigher * std::max(to_potential - distance_most_, 0) +
           static_cast<int>(random_() % kHarmless);
  }

  /// Lifts the seeker in queue_ whose lifting costs least; false if no seeker gains.
  bool lift_one() {
    int best = kNone;
    int best_cost = std::numeric_limits<int>::max();
    for (const int seeker : queue_) {
      const int to_potential = lifted(seeker);
      if (to_potential == std::numeric_limits<int>::max()) continue;
      const std::optional<int> cost = cost_of_lifting(seeker, to_potential);
      if (!cost || *cost >= best_cost) continue;
      best = seeker;
      best_cost = *cost;
      if (best_cost < kHarmless) break;
    }
    if (best == kNone) return false;
    potentials_[index(best)] = lifted(best);
    for (const Neighbour* to = begin_of(best); to != end_of(best); ++to) {
      const int child = at_node(best, to->node);
      if (cables_[index(child)] != to->cable || may_use(child, {node_of(best), to->cable})) continue;
      cables_[index(child)] = kNone;
      owners_[index(to->cable)] = kNone;
    }
    return true;
  }

  std::vector<RootedCables> trees() const {
    std::vector<RootedCables> result;
    for (int tree = 0; tree < trees_; ++tree) {
      result.push_back({roots_[index(tree)], {}});
      for (int node = 0; node < nodes_; ++node) {
        const CableId cable = cables_[index(tree * nodes_ + node)];
        if (cable != kNone) result.back().cables.push_back(cable);
      }
    }
    return result;
  }

  // The number of a seeker is tree * nodes_ + node.
  int nodes_;
  int trees_;
  int ways_;                           ///< neighbours of each node
  std::vector<Neighbour> neighbours_;  ///< ways_ entries for each node
  std::vector<int> roots_;             ///< by tree
  std::vector<int> potentials_;        ///< by seeker
  int distance_most_ = 0;
  std::vector<CableId> cables_;  ///< by seeker
  std::vector<int> owners_;      ///< by cable: a seeker
  std::vector<int> levels_;      ///< by seeker, set by look_for_ways()
  std::vector<bool> is_wanted_;  ///< by cable: a seeker in queue_ may use the cable
  std::vector<int> queue_;       ///< set by look_for_ways()
  std::mt19937_64 random_{1};
};

}  // namespace

std::optional<std::vector<RootedCables>> low_trees(const Topology& shape) {
  std::vector<int> dimensions;
  for (int d = 0; d < 3; ++d) {
    if (shape.extents()[index(d)] == 1) continue;
    if (!shape.wraps(d)) return std::nullopt;
    dimensions.push_back(d);
  }
  if (dimensions.size() < 2) return std::nullopt;
  return TreeSearch(shape, dimensions).find();
}

}  // namespace torii
