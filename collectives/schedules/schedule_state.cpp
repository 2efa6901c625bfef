// SPDX-License-Identifier: Apache-2.0
// Places transfers, and computes the labels of partial schedules.
#include "collectives/schedules/schedule_state.hpp"

#include <algorithm>

namespace torii::scheduling {
namespace {

std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;  // splitmix64
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

std::uint64_t mix(std::uint64_t a, std::uint64_t b) { return mix(mix(a) ^ (b * 0xd6e8feb86659fd93ULL)); }

/// `begin` if a use of [begin, begin + duration) at `rate` fits on a resource; otherwise a later time before which it
/// cannot begin.
Ticks first_fit(std::span<const Reservation> reservations, std::int64_t capacity, Ticks begin, Ticks duration,
                std::int64_t rate) {
  const Ticks end = begin + duration;
  // The occupied bandwidth rises only where a reservation begins, so checking those times is enough.
  const auto check = [&](Ticks moment) {
    std::int64_t used = rate;
    Ticks frees = kNever;
    for (const Reservation& one : reservations) {
      if (one.begin > moment || one.end <= moment) continue;
      used += one.rate;
      frees = std::min(frees, one.end);
    }
    return used > capacity ? frees : kNever;
  };
  if (const Ticks frees = check(begin); frees != kNever) return frees;
  for (const Reservation& one : reservations) {
    if (one.begin <= begin || one.begin >= end) continue;
    if (const Ticks frees = check(one.begin); frees != kNever) return frees;
  }
  return begin;
}

}  // namespace

State::State(const Model& model, int root)
    : model_(&model), have_(at(model.ranks()), kNever), holders_{root}, reservations_(at(model.resources())) {
  have_[at(root)] = 0;
}

Ticks State::earliest(int sender, int receiver) const {
  const Way& way = model_->way(sender, receiver);
  Ticks start = have_[at(sender)];
  for (bool fits = false; !fits;) {
    fits = true;
    for (const Hop& hop : model_->hops(way)) {
      const Ticks begin = start + hop.before;
      const Ticks first =
          first_fit(reservations_[at(hop.resource)], model_->capacity(hop.resource), begin, way.duration, way.rate);
      if (first == begin) continue;
      start = first - hop.before;
      fits = false;
    }
  }
  return start;
}

void State::place(const Move& move) {
  const Way& way = model_->way(move.sender, move.receiver);
  for (const Hop& hop : model_->hops(way)) {
    const Ticks begin = move.start + hop.before;
    reservations_[at(hop.resource)].push_back({begin, begin + way.duration, way.rate});
  }
  const Ticks end = move.start + way.latency + way.duration;
  have_[at(move.receiver)] = end;
  holders_.push_back(move.receiver);
  last_ = move.start;
  completion_ = std::max(completion_, end);
}

void State::take_back(const Move& move, Ticks last, Ticks completion) {
  for (const Hop& hop : model_->hops(model_->way(move.sender, move.receiver))) {
    reservations_[at(hop.resource)].pop_back();
  }
  have_[at(move.receiver)] = kNever;
  holders_.pop_back();
  last_ = last;
  completion_ = completion;
}

Labels::Labels(const Model& model)
    : model_(&model),
      to_parent_(at(model.nodes())),
      fixed_(at(model.resources())),
      busy_(at(model.resources())),
      own_(at(model.nodes())),
      sum_(at(model.nodes())),
      hanging_(at(model.resources())),
      rooted_(at(model.nodes())) {
  const TreeTopology& tree = model.tree();
  order_ = {0};
  for (std::size_t head = 0; head < order_.size(); ++head) {
    const int node = order_[head];
    for (const TreeHop hop : tree.hops(node)) {
      if (head != 0 && hop.link == to_parent_[at(node)].link) continue;
      to_parent_[at(tree.reaches(hop))] = {hop.link, 1 - hop.direction};
      order_.push_back(tree.reaches(hop));
    }
  }
  for (std::size_t link = 0; link < tree.links().size(); ++link) {
    const TreeLink& of = tree.links()[link];
    for (std::size_t way : {0, 1}) {
      std::uint64_t label = of.half_duplex ? 1 : 2;
      for (std::size_t side : {way, 1 - way}) {
        label = mix(label, static_cast<std::uint64_t>(of.bandwidth[side]));
        label = mix(label, static_cast<std::uint64_t>(of.latency_ns[side]));
      }
      fixed_[2 * link + way] = label;
    }
  }
}

std::uint64_t Labels::edge(int link, int direction) const {
  const std::size_t along = at(2 * link + direction);
  const std::size_t against = at(2 * link + 1 - direction);
  return mix(mix(fixed_[along], busy_[along]), busy_[against]);
}

void Labels::label_links(const State& state) {
  for (std::size_t resource = 0; resource < busy_.size(); ++resource) {
    std::uint64_t label = 0;
    for (const Reservation& one : state.reservations(static_cast<int>(resource))) {
      if (one.end <= state.last()) continue;
      label +=
          mix(mix(static_cast<std::uint64_t>(std::max(one.begin, state.last())), static_cast<std::uint64_t>(one.end)),
              static_cast<std::uint64_t>(one.rate));
    }
    busy_[resource] = label;
  }
  for (std::size_t link = 0; link < model_->tree().links().size(); ++link) {
    if (model_->tree().links()[link].half_duplex) busy_[2 * link + 1] = busy_[2 * link];
  }
}

void Labels::update(const State& state) {
  const TreeTopology& tree = model_->tree();
  label_links(state);
  for (std::size_t node = 0; node < own_.size(); ++node) {
    const int rank = tree.nodes()[node].rank;
    const Ticks have = rank < 0 ? -1 : state.have(rank);
    own_[node] = mix(rank < 0 ? 3 : 4, static_cast<std::uint64_t>(rank < 0 ? have : std::max(have, state.last())));
    sum_[node] = own_[node];
  }
  for (std::size_t i = order_.size(); i-- > 1;) {
    const int node = order_[i];
    const TreeHop up = to_parent_[at(node)];
    const std::uint64_t hanging = mix(sum_[at(node)], edge(up.link, up.direction));
    hanging_[at(2 * up.link + up.direction)] = hanging;
    sum_[at(tree.reaches(up))] += hanging;
  }
  whole_ = 0;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const int node = order_[i];
    if (i != 0) {
      const TreeHop up = to_parent_[at(node)];
      const int down = 1 - up.direction;
      const std::uint64_t above = sum_[at(tree.reaches(up))] - hanging_[at(2 * up.link + up.direction)];
      hanging_[at(2 * up.link + down)] = mix(above, edge(up.link, down));
      sum_[at(node)] += hanging_[at(2 * up.link + down)];
    }
    rooted_[at(node)] = mix(sum_[at(node)]);
    whole_ += mix(rooted_[at(node)]);
  }
}

std::uint64_t Labels::of(int sender, int receiver) const {
  const Way& way = model_->way(sender, receiver);
  std::size_t node = at(model_->tree().node_of(sender));
  std::uint64_t label = 5;
  std::uint64_t came = 0;
  for (const Hop& hop : model_->hops(way)) {
    const std::size_t back = at(2 * hop.link + 1 - hop.direction);
    label = mix(label, sum_[node] - came - hanging_[back]);
    label = mix(label, edge(hop.link, hop.direction));
    came = hanging_[at(2 * hop.link + hop.direction)];
    node = at(hop.to);
  }
  return mix(label, sum_[node] - came);
}

}  // namespace torii::scheduling
