// SPDX-License-Identifier: Apache-2.0
// Counts first copies across cuts. schedule_cuts.cpp computes the data that depend on the network only.
#include "collectives/schedules/schedule_bound.hpp"

#include <algorithm>
#include <cmath>

namespace torii::scheduling {

double Bound::Source::next() const {
  return base + std::max(least, static_cast<double>(std::max(copies + 1 - spare, 0)) * period);
}

double Bound::BusySource::first_free() const {
  for (const auto& [moment, rate] : free) {
    if (rate > 0) return moment;
  }
  return free.back().first;
}

double Bound::BusySource::carried(double amount) const {
  for (std::size_t i = 0;; ++i) {
    const auto [moment, rate] = free[i];
    const bool is_last = i + 1 == free.size();
    const double room = is_last ? 0 : (free[i + 1].first - moment) * rate;
    if (is_last || room >= amount) return moment + amount / rate;
    amount -= room;
  }
}

void Bound::Best::add(const Component& component) {
  capacity = std::max(capacity, component.capacity);
  rate_out = std::max(rate_out, component.rate_out);
  rate_in = std::max(rate_in, component.rate_in);
  way_out = std::min(way_out, component.least_before + component.out_latency);
  latency_in = std::min(latency_in, component.latency_in);
}

/// Gives each target the earliest copy of sources_ that is left. A target that has received becomes a source with the
/// best properties of all targets. `insides` holds the inside times of the targets, the longest first.
Ticks Bound::arrivals(std::span<const Ticks> insides, const Best& best, double floor, double enough) {
  const auto later = [](const std::pair<double, std::size_t>& a, const std::pair<double, std::size_t>& b) {
    return a.first > b.first;
  };
  const auto next_of = [this](const Source& source) {
    if (source.busy < 0) return source.next();
    const BusySource& busy = busy_sources_[at(source.busy)];
    const double amount = (source.copies + 1) * model_->bytes() * model_->ticks_per_second();
    return busy.base + std::max(busy.carried(amount), busy.first_free() + busy.least);
  };
  const double least = static_cast<double>(model_->duration(std::min(best.rate_out, best.rate_in)));
  const double period = model_->bytes() * model_->ticks_per_second() / static_cast<double>(best.capacity);
  std::vector<std::pair<double, std::size_t>> heap;
  for (std::size_t i = 0; i < sources_.size(); ++i) heap.emplace_back(next_of(sources_[i]), i);
  std::make_heap(heap.begin(), heap.end(), later);
  double bound = floor;
  for (const Ticks inside : insides) {
    if (heap.empty()) return kNever;
    std::pop_heap(heap.begin(), heap.end(), later);
    const auto [arrival, from] = heap.back();
    bound = std::max(bound, arrival + static_cast<double>(inside));
    if (bound >= enough) break;
    ++sources_[from].copies;
    heap.back().first = next_of(sources_[from]);
    std::push_heap(heap.begin(), heap.end(), later);
    sources_.push_back(
        {.base = arrival + static_cast<double>(best.way_out + best.latency_in), .least = least, .period = period});
    heap.emplace_back(sources_.back().next(), sources_.size() - 1);
    std::push_heap(heap.begin(), heap.end(), later);
  }
  return static_cast<Ticks>(bound);
}

/// A component that has the message, as a source; a busy source if transfers are reserved on its exit link.
Bound::Source Bound::source_of(const Component& component, const Best& targets, const State& state) {
  Ticks gate = kNever;
  for (std::size_t i = 0; i < component.ranks.size(); ++i) {
    const Ticks have = state.have(component.ranks[i]);
    if (have != kNever) gate = std::min(gate, std::max(have, state.last()) + component.before[i]);
  }
  const double least = static_cast<double>(model_->duration(std::min(component.rate_out, targets.rate_in)));
  const double after = static_cast<double>(component.out_latency + targets.latency_in);
  std::vector<std::pair<double, double>> changes;  // (time, change of the free bandwidth)
  double free = static_cast<double>(component.capacity);
  for (const Reservation& one : state.reservations(component.out_resource)) {
    if (one.end <= gate) continue;
    const auto rate = static_cast<double>(one.rate);
    if (one.begin <= gate) {
      free -= rate;
    } else {
      changes.emplace_back(static_cast<double>(one.begin), -rate);
    }
    changes.emplace_back(static_cast<double>(one.end), rate);
  }
  if (changes.empty()) {
    return {.base = static_cast<double>(gate) + after,
            .least = least,
            .period = model_->bytes() * model_->ticks_per_second() / static_cast<double>(component.capacity)};
  }
  std::sort(changes.begin(), changes.end());
  BusySource busy;
  busy.base = after;
  busy.least = least;
  busy.free.emplace_back(static_cast<double>(gate), free);
  for (const auto& [moment, change] : changes) {
    free += change;
    if (moment == busy.free.back().first) {
      busy.free.back().second = free;
    } else {
      busy.free.emplace_back(moment, free);
    }
  }
  busy_sources_.push_back(std::move(busy));
  return {.busy = static_cast<int>(busy_sources_.size()) - 1};
}

Ticks Bound::of_cut(const Cut& cut, const State& state, Ticks enough) {
  const auto is_target = [&](const Component& component) {
    return std::none_of(component.ranks.begin(), component.ranks.end(), [&](int rank) { return state.has(rank); });
  };
  target_insides_.clear();
  Best best;
  for (const Component& component : cut) {
    const bool is_wanting = is_target(component);
    if (is_wanting) target_insides_.push_back(component.inside);
    // A component whose copy is still under way may receive another one earlier and forward that.
    const auto is_there = [&](int rank) { return state.have(rank) <= state.last(); };
    if (is_wanting || std::none_of(component.ranks.begin(), component.ranks.end(), is_there)) best.add(component);
  }
  if (target_insides_.empty()) return 0;
  sources_.clear();
  busy_sources_.clear();
  for (const Component& component : cut) {
    if (!is_target(component)) sources_.push_back(source_of(component, best, state));
  }
  return arrivals(target_insides_, best, 0, static_cast<double>(enough));
}

Ticks Bound::of(const State& state, Ticks enough) {
  Ticks bound = state.completion();
  if (by_pairs_) {
    for (int receiver = 0; receiver < model_->ranks(); ++receiver) {
      if (state.has(receiver)) continue;
      Ticks first = kNever;
      for (const int sender : state.holders()) {
        const Way& way = model_->way(sender, receiver);
        first = std::min(first, std::max(state.have(sender), state.last()) + way.latency + way.duration);
      }
      bound = std::max(bound, first);
    }
  }
  for (const Cut& cut : cuts_) {
    if (bound >= enough) break;
    bound = std::max(bound, of_cut(cut, state, enough));
  }
  return bound;
}

}  // namespace torii::scheduling
