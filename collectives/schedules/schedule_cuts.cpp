// SPDX-License-Identifier: Apache-2.0
// The data of the bound that depend on the network only: cuts, their components, and the components' inside times.
#include <algorithm>
#include <cmath>

#include "collectives/schedules/schedule_bound.hpp"

namespace torii::scheduling {
namespace {

/// Components of more ranks have their inside time bounded by cuts alone.
constexpr std::size_t kPairsMost = 16;
/// Networks of more ranks are bounded by cuts alone, which are nearly as tight there.
constexpr int kRanksByPairsMost = 24;

}  // namespace

Bound::Bound(const Model& model) : model_(&model), levels_(levels()), by_pairs_(model.ranks() <= kRanksByPairsMost) {
  const int nodes = model.nodes();
  const int highest = *std::max_element(levels_.begin(), levels_.end());
  std::vector<std::vector<bool>> seen;
  for (int level = highest; level >= 0; --level) {
    std::vector<bool> relays(at(nodes), false);
    for (int node = 0; node < nodes; ++node) relays[at(node)] = levels_[at(node)] >= level;
    for (std::vector<bool>& set : connected(relays)) {
      if (std::find(seen.begin(), seen.end(), set) != seen.end()) continue;
      add_cut(set);
      seen.push_back(std::move(set));
    }
  }
  for (int node = 0; node < nodes; ++node) {
    if (levels_[at(node)] < 0) continue;
    std::vector<bool> alone(at(nodes), false);
    alone[at(node)] = true;
    if (std::find(seen.begin(), seen.end(), alone) == seen.end()) add_cut(alone);
  }
}

/// By node: how often the outermost relays must be removed until this relay is an outermost one; -1 for ranks.
std::vector<int> Bound::levels() const {
  const TreeTopology& tree = model_->tree();
  std::vector<int> levels(at(model_->nodes()), -1);
  std::vector<int> neighbours(levels.size(), 0);
  std::vector<int> rim;
  const auto is_relay = [&](int node) { return tree.nodes()[at(node)].rank < 0; };
  for (int node = 0; node < model_->nodes(); ++node) {
    if (!is_relay(node)) continue;
    for (const TreeHop hop : tree.hops(node)) neighbours[at(node)] += is_relay(tree.reaches(hop)) ? 1 : 0;
    if (neighbours[at(node)] <= 1) rim.push_back(node);
  }
  for (int level = 0; !rim.empty(); ++level) {
    std::vector<int> next;
    for (const int node : rim) levels[at(node)] = level;
    for (const int node : rim) {
      for (const TreeHop hop : tree.hops(node)) {
        const int other = tree.reaches(hop);
        if (is_relay(other) && levels[at(other)] < 0 && --neighbours[at(other)] == 1) next.push_back(other);
      }
    }
    for (const int node : rim) {
      for (const TreeHop hop : tree.hops(node)) {
        // The last two relays face each other, or one relay lost all its neighbours at once.
        const int other = tree.reaches(hop);
        if (is_relay(other) && levels[at(other)] < 0 && neighbours[at(other)] <= 0) next.push_back(other);
      }
    }
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    rim = std::move(next);
  }
  return levels;
}

std::vector<std::vector<bool>> Bound::connected(const std::vector<bool>& relays) const {
  std::vector<std::vector<bool>> sets;
  std::vector<bool> reached(relays.size(), false);
  for (int start = 0; start < model_->nodes(); ++start) {
    if (!relays[at(start)] || reached[at(start)]) continue;
    std::vector<bool> set(relays.size(), false);
    std::vector<int> open = {start};
    while (!open.empty()) {
      const int node = open.back();
      open.pop_back();
      set[at(node)] = reached[at(node)] = true;
      for (const TreeHop hop : model_->tree().hops(node)) {
        const int other = model_->tree().reaches(hop);
        if (relays[at(other)] && !reached[at(other)]) open.push_back(other);
      }
    }
    sets.push_back(std::move(set));
  }
  return sets;
}

void Bound::add_cut(const std::vector<bool>& in_cut) {
  const auto first = std::find(in_cut.begin(), in_cut.end(), true);
  Cut cut = make_cut(in_cut, static_cast<int>(first - in_cut.begin()), {-1, 0});
  if (cut.size() > 1) cuts_.push_back(std::move(cut));
}

/// The components of the cut that contains node `first`, without the component from which `from_outside` leads in.
Bound::Cut Bound::make_cut(const std::vector<bool>& in_cut, int first, TreeHop from_outside) {
  const TreeTopology& tree = model_->tree();
  Cut cut;
  std::vector<std::pair<int, int>> open = {{first, from_outside.link}};
  while (!open.empty()) {
    const auto [node, came] = open.back();
    open.pop_back();
    for (const TreeHop hop : tree.hops(node)) {
      if (hop.link == came) continue;
      if (in_cut[at(tree.reaches(hop))]) {
        open.emplace_back(tree.reaches(hop), hop.link);
        continue;
      }
      Component component = make_component(hop);
      if (!component.ranks.empty()) cut.push_back(std::move(component));
    }
  }
  std::stable_sort(cut.begin(), cut.end(), [](const Component& a, const Component& b) { return a.inside > b.inside; });
  return cut;
}

Bound::Component Bound::make_component(TreeHop into) {
  const TreeTopology& tree = model_->tree();
  struct Open {
    int node;
    int came;
    std::int64_t rate_out, rate_in;
    Ticks before, latency_in;
  };
  const TreeHop out = {into.link, 1 - into.direction};
  Component component;
  component.out_resource = model_->resource(out);
  component.out_latency = model_->latency(out);
  component.capacity = model_->bandwidth(out);
  component.least_before = kNever;
  component.latency_in = kNever;
  std::vector<Open> open = {
      {tree.reaches(into), into.link, model_->bandwidth(out), model_->bandwidth(into), 0, model_->latency(into)}};
  while (!open.empty()) {
    const Open here = open.back();
    open.pop_back();
    if (const int rank = tree.nodes()[at(here.node)].rank; rank >= 0) {
      component.ranks.push_back(rank);
      component.before.push_back(here.before);
      component.rate_out = std::max(component.rate_out, here.rate_out);
      component.rate_in = std::max(component.rate_in, here.rate_in);
      component.least_before = std::min(component.least_before, here.before);
      component.latency_in = std::min(component.latency_in, here.latency_in);
    }
    for (const TreeHop hop : tree.hops(here.node)) {
      if (hop.link == here.came) continue;
      const TreeHop back = {hop.link, 1 - hop.direction};
      open.push_back({tree.reaches(hop), hop.link, std::min(here.rate_out, model_->bandwidth(back)),
                      std::min(here.rate_in, model_->bandwidth(hop)), here.before + model_->latency(back),
                      here.latency_in + model_->latency(hop)});
    }
  }
  if (!component.ranks.empty()) component.inside = inside(into, component.ranks);
  return component;
}

/// The rates, lowest first, of transfers that can cross `hop` at once and have their slowest link before `hop`
/// (`upstream`) or after it. Each link is the slowest one of a single transfer at a time, because that transfer fills
/// it.
std::vector<std::int64_t> Bound::least_rates(TreeHop hop, bool upstream) {
  const TreeTopology& tree = model_->tree();
  const int node = tree.links()[at(hop.link)].ends[at(upstream ? hop.direction : 1 - hop.direction)];
  std::vector<std::int64_t> rates;
  for (const TreeHop other : tree.hops(node)) {
    if (other.link == hop.link) continue;
    const TreeHop along = {other.link, upstream ? 1 - other.direction : other.direction};
    const std::vector<std::int64_t> more = least_rates(along, upstream);
    rates.insert(rates.end(), more.begin(), more.end());
  }
  std::sort(rates.begin(), rates.end());
  const std::int64_t capacity = model_->bandwidth(hop);
  std::int64_t sum = 0;
  std::size_t fit = 0;
  while (fit < rates.size() && rates[fit] <= capacity - sum) sum += rates[fit++];
  rates.resize(fit);
  if (rates.empty()) rates.push_back(capacity);
  return rates;
}

/// The copies that enter a component over a link after the first arrival there. `spread` is the difference of the
/// largest and the least latency from that link to a rank.
Bound::Source Bound::from_outside(TreeHop into, Ticks spread) {
  std::vector<std::int64_t> rates = least_rates(into, true);
  const std::vector<std::int64_t> behind = least_rates(into, false);
  rates.insert(rates.end(), behind.begin(), behind.end());
  std::sort(rates.begin(), rates.end());
  const std::int64_t capacity = model_->bandwidth(into);
  std::int64_t sum = 0;
  int at_once = 0;
  for (const std::int64_t rate : rates) {
    if (rate > capacity - sum || rate == capacity) break;
    sum += rate;
    ++at_once;
  }
  return {.base = -2 * static_cast<double>(spread),
          .period = static_cast<double>(model_->duration(capacity)),
          .spare = std::max(at_once, 1) - 1};
}

Ticks Bound::inside(TreeHop into, const std::vector<int>& ranks) {
  if (ranks.size() == 1) return 0;
  const auto [known, fresh] = insides_.try_emplace({into.link, into.direction}, 0);
  if (!fresh) return known->second;
  const TreeTopology& tree = model_->tree();
  const int top = tree.reaches(into);
  Ticks least = kNever;
  Ticks most = 0;
  for (const int rank : ranks) {
    Ticks latency = 0;
    for (const TreeHop hop : tree.way(top, tree.node_of(rank))) latency += model_->latency(hop);
    least = std::min(least, latency);
    most = std::max(most, latency);
  }
  const Source outside = from_outside(into, most - least);
  Ticks bound = ranks.size() <= kPairsMost ? inside_by_pairs(ranks, outside) : 0;
  for (int level = levels_[at(top)]; level >= 0; --level) {
    std::vector<bool> relays(at(model_->nodes()), false);
    for (std::size_t node = 0; node < relays.size(); ++node) relays[node] = levels_[node] >= level;
    relays[at(tree.links()[at(into.link)].ends[at(into.direction)])] = false;
    for (const std::vector<bool>& set : connected(relays)) {
      if (set[at(top)]) bound = std::max(bound, inside_by_cut(make_cut(set, top, into), outside));
    }
  }
  return insides_[{into.link, into.direction}] = bound;
}

/// The best choice of the first receiver, which then sends to all others unless a copy from outside is earlier.
Ticks Bound::inside_by_pairs(std::span<const int> ranks, const Source& outside) const {
  const Ticks from_outside = std::max<Ticks>(0, static_cast<Ticks>(outside.next()));
  Ticks best = kNever;
  for (const int first : ranks) {
    Ticks longest = 0;
    for (const int other : ranks) {
      if (other == first) continue;
      const Way& way = model_->way(first, other);
      longest = std::max(longest, std::min(way.duration + way.latency, from_outside));
    }
    best = std::min(best, longest);
  }
  return best;
}

/// One component has the first copy at time 0, and further copies come from outside.
Ticks Bound::inside_by_cut(const Cut& cut, const Source& outside) {
  if (cut.size() < 2) return 0;
  Best best;
  std::vector<Ticks> insides;
  for (const Component& component : cut) {
    best.add(component);
    insides.push_back(component.inside);
  }
  sources_.clear();
  busy_sources_.clear();
  sources_.push_back(outside);
  sources_.push_back({.base = static_cast<double>(best.way_out + best.latency_in),
                      .least = static_cast<double>(model_->duration(std::min(best.rate_out, best.rate_in))),
                      .period = model_->bytes() * model_->ticks_per_second() / static_cast<double>(best.capacity)});
  const Ticks first = insides.front();
  return std::max<Ticks>(
      0, arrivals(std::span(insides).subspan(1), best, static_cast<double>(first), static_cast<double>(kNever)));
}

}  // namespace torii::scheduling
