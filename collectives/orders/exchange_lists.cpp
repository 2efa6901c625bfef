// SPDX-License-Identifier: Apache-2.0
// Exchange lists of any topology: maps the constructions to the topology's axes, adds the ranks of a node, and caches
// the lists.
#include "collectives/orders/exchange_lists.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "collectives/orders/exchange_parts.hpp"
#include "runtime/base/index.hpp"
#include "runtime/base/status.hpp"
#include "runtime/topology/routing.hpp"

namespace torii {
namespace {

/// The dimensions in the order of an ExchangeShape: the longest first; of equal extents, those that wrap first.
std::array<std::size_t, 3> shape_axes(const Topology& topology) {
  std::array<std::size_t, 3> axes = {0, 1, 2};
  std::stable_sort(axes.begin(), axes.end(), [&](std::size_t a, std::size_t b) {
    const auto key = [&](std::size_t d) {
      return std::pair(topology.extents()[d], topology.wraps(static_cast<int>(d)));
    };
    return key(a) > key(b);
  });
  return axes;
}

ExchangeShape normal_shape(const Topology& topology, const std::array<std::size_t, 3>& axes) {
  ExchangeShape shape;
  for (std::size_t i = 0; i < 3; ++i) {
    shape.extents[i] = topology.extents()[axes[i]];
    if (shape.extents[i] == 1) break;
    shape.wraps[i] = topology.wraps(static_cast<int>(axes[i]));
    ++shape.dimensions;
  }
  return shape;
}

ExchangeOffsets shape_offsets(ExchangeOrder order, const ExchangeShape& shape, int controllers) {
  const int x = shape.extents[0];
  const int y = shape.extents[1];
  if (shape.dimensions <= 2 && shape.wraps_nowhere()) return mesh_offsets(x, y);
  if (order == ExchangeOrder::a2at_printed) return printed_torus_offsets(x, y);
  if (shape.dimensions <= 2 && shape.wraps_everywhere()) return torus_offsets(x, y);
  return box_offsets(shape, controllers);
}

/// One transfer per other node, in the topology's own axes.
ExchangeOffsets node_offsets(ExchangeOrder order, const Topology& topology, int controllers) {
  if (order == ExchangeOrder::a2and) {
    return counted_offsets(topology.extents(), {topology.wraps(0), topology.wraps(1), topology.wraps(2)});
  }
  const std::array<std::size_t, 3> axes = shape_axes(topology);
  ExchangeOffsets offsets = shape_offsets(order, normal_shape(topology, axes), controllers);
  for (ExchangeOffset& offset : offsets) {
    const Coordinates steps = offset.steps;
    for (std::size_t i = 0; i < 3; ++i) offset.steps[axes[i]] = steps[i];
  }
  return offsets;
}

/// Repeats the list of nodes for each difference of places on a node; ties by parity alternate their direction. The
/// ranks of the sender's own node come last, because they need no link.
ExchangeOffsets with_places(const ExchangeOffsets& offsets, int per_node) {
  ExchangeOffsets all;
  all.reserve((offsets.size() + 1) * index(per_node) - 1);
  for (int place = 0; place < per_node; ++place) {
    for (ExchangeOffset offset : offsets) {
      offset.place = place;
      if (offset.by_parity && place % 2 == 1) {
        for (int& steps : offset.steps) steps = -steps;
      }
      all.push_back(offset);
    }
  }
  for (int place = 1; place < per_node; ++place) all.push_back({{0, 0, 0}, place, false});
  return all;
}

ExchangeList make_list(ExchangeOrder order, const Topology& topology, int controllers) {
  ExchangeList list;
  list.transfers = index(topology.ranks() - 1);
  if (topology.kind() == Topology::Kind::torus && order != ExchangeOrder::a2a) {
    list.offsets = with_places(node_offsets(order, topology, controllers), topology.per_node());
  }
  const std::size_t counted = list.offsets.empty() ? list.transfers : list.offsets.size();
  if (counted != list.transfers) {
    throw Error(Status::internal, "the exchange list " + std::string(name(order)) + " of " + topology.text() + " has " +
                                      std::to_string(counted) + " transfers for " + std::to_string(list.transfers) +
                                      " receivers");
  }
  return list;
}

/// Hops along one dimension to `steps` further on: the way of the sign where it wraps, back where a mesh would end.
int hops_along(const Topology& topology, int dimension, int at, int steps) {
  if (topology.wraps(dimension)) return steps;
  const int extent = topology.extents()[index(dimension)];
  return (at + steps + extent) % extent - at;
}

/// The rank that is the transfer's offset away from `rank`, forwards (`sign` 1) or backwards (-1).
int shifted(const Topology& topology, const ExchangeList& list, int rank, std::size_t transfer, int sign) noexcept {
  const auto wrapped = [sign](int at, int steps, int extent) { return (at + sign * steps + extent) % extent; };
  if (list.offsets.empty()) return wrapped(rank, static_cast<int>(transfer) + 1, topology.ranks());
  const ExchangeOffset& offset = list.offsets[transfer];
  Coordinates at = topology.coordinates(rank);
  for (std::size_t d = 0; d < 3; ++d) at[d] = wrapped(at[d], offset.steps[d], topology.extents()[d]);
  const int place = wrapped(topology.place_of(rank), offset.place, topology.per_node());
  return topology.rank_at(topology.node_of(topology.rank(at)), place);
}

}  // namespace

bool ExchangeShape::wraps_everywhere() const {
  return std::all_of(wraps.begin(), wraps.begin() + dimensions, [](bool one) { return one; });
}

bool ExchangeShape::wraps_nowhere() const {
  return std::none_of(wraps.begin(), wraps.begin() + dimensions, [](bool one) { return one; });
}

ExchangeOffsets counted_offsets(const Coordinates& extents, const std::array<bool, 3>& wraps) {
  const auto shorter = [&](std::size_t d, int steps) {
    return wraps[d] && 2 * steps > extents[d] ? steps - extents[d] : steps;
  };
  ExchangeOffsets offsets;
  for (int x = 0; x < extents[0]; ++x) {
    for (int y = 0; y < extents[1]; ++y) {
      for (int z = 0; z < extents[2]; ++z) {
        if (x == 0 && y == 0 && z == 0) continue;
        offsets.push_back({{shorter(0, x), shorter(1, y), shorter(2, z)}});
      }
    }
  }
  return offsets;
}

std::string_view name(ExchangeOrder order) noexcept {
  constexpr std::array<std::string_view, 4> kNames = {"a2a", "a2and", "a2at_printed", "a2at"};
  return kNames[static_cast<std::size_t>(order)];
}

std::string why_no_exchange_list(ExchangeOrder order, const Topology& topology) {
  if (order != ExchangeOrder::a2at_printed || topology.kind() != Topology::Kind::torus) return "";
  const ExchangeShape shape = normal_shape(topology, shape_axes(topology));
  if (shape.dimensions == 3) return "the paper's order is for one or two dimensions, " + topology.text() + " has three";
  if (!shape.wraps_everywhere() && !shape.wraps_nowhere()) {
    return "the paper's order is for tori and for meshes, " + topology.text() + " is a mixture";
  }
  return "";
}

const ExchangeList& exchange_list(ExchangeOrder order, const Topology& topology, int controllers) {
  if (const std::string why = why_no_exchange_list(order, topology); !why.empty()) {
    throw Error(Status::unsupported, "no exchange list " + std::string(name(order)) + ": " + why + "; use a2at");
  }
  // One lock for finding and making: two threads that want the same list make it once.
  static std::mutex mutex;
  static std::map<std::tuple<ExchangeOrder, int, std::string, int>, std::unique_ptr<const ExchangeList>> lists;
  const std::lock_guard<std::mutex> lock(mutex);
  const int chosen_for = order != ExchangeOrder::a2at ? 0 : controllers < 4 ? 3 : controllers < 6 ? 4 : 6;
  std::unique_ptr<const ExchangeList>& list = lists[{order, topology.ranks(), topology.text(), chosen_for}];
  if (!list) list = std::make_unique<const ExchangeList>(make_list(order, topology, chosen_for));
  return *list;
}

int receiver(const Topology& topology, const ExchangeList& list, int rank, std::size_t transfer) noexcept {
  return shifted(topology, list, rank, transfer, 1);
}

int sender(const Topology& topology, const ExchangeList& list, int rank, std::size_t transfer) noexcept {
  return shifted(topology, list, rank, transfer, -1);
}

Coordinates exchange_hops(const Topology& topology, const ExchangeList& list, int rank, std::size_t transfer) noexcept {
  if (topology.kind() != Topology::Kind::torus) return {0, 0, 0};
  const Coordinates at = topology.coordinates(rank);
  Coordinates hops = {0, 0, 0};
  if (list.offsets.empty()) {
    const Coordinates to = topology.coordinates(receiver(topology, list, rank, transfer));
    for (int d = 0; d < 3; ++d) {
      const int extent = topology.extents()[index(d)];
      int steps = (to[index(d)] - at[index(d)] + extent) % extent;
      if (topology.wraps(d) && 2 * steps > extent) steps -= extent;
      hops[index(d)] = hops_along(topology, d, at[index(d)], steps);
    }
    return hops;
  }
  const ExchangeOffset& offset = list.offsets[transfer];
  for (int d = 0; d < 3; ++d) {
    const int steps = offset.steps[index(d)];
    const bool is_tie = 2 * std::abs(steps) == topology.extents()[index(d)];
    const bool turns = offset.by_parity && is_tie && at[index(d)] % 2 == 1;
    hops[index(d)] = hops_along(topology, d, at[index(d)], turns ? -steps : steps);
  }
  return hops;
}

Ties exchange_ties(const Topology& topology, const ExchangeList& list, int rank, std::size_t transfer) noexcept {
  if (!topology.selects_ties()) return {};
  if (list.offsets.empty()) return balanced_ties(topology, rank, receiver(topology, list, rank, transfer));
  const Coordinates hops = exchange_hops(topology, list, rank, transfer);
  Ties ties = {};
  for (std::size_t d = 0; d < 3; ++d) {
    const bool is_tie = topology.wraps(static_cast<int>(d)) && 2 * std::abs(hops[d]) == topology.extents()[d];
    if (is_tie) ties[d] = hops[d] > 0 ? 1 : -1;
  }
  return ties;
}

ExchangeTraffic exchange_traffic(const Topology& topology, const ExchangeList& list) {
  ExchangeTraffic traffic;
  traffic.transfers = list.transfers;
  traffic.hops = [&](int rank, std::size_t transfer) { return exchange_hops(topology, list, rank, transfer); };
  traffic.mates_alike = !list.offsets.empty();
  for (std::size_t d = 0; d < 3; ++d) {
    const bool is_last = std::all_of(topology.extents().begin() + static_cast<std::ptrdiff_t>(d) + 1,
                                     topology.extents().end(), [](int extent) { return extent == 1; });
    // If receivers are counted by rank, a step along any dimension but the last one leads only some ranks to the next
    // row.
    const bool is_even = topology.wraps(static_cast<int>(d)) && (is_last || !list.offsets.empty());
    traffic.period[d] = is_even ? 1 : topology.extents()[d];
    const bool by_parity = std::any_of(list.offsets.begin(), list.offsets.end(), [&](const ExchangeOffset& offset) {
      return offset.by_parity && 2 * std::abs(offset.steps[d]) == topology.extents()[d];
    });
    if (is_even && by_parity) traffic.period[d] = 2;
  }
  return traffic;
}

}  // namespace torii
