// SPDX-License-Identifier: Apache-2.0
// Links and time lines as lines, bars and words.
#include "tools/torii-sim/pictures.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/drawing/svg.hpp"
#include "runtime/topology/routing.hpp"

namespace torii::tools {
namespace {

constexpr double kSpacing = 40;  // between nodes
constexpr double kMargin = 40;
constexpr double kTitle = 30;
constexpr double kAside = 3;  // the two directions of a cable are drawn side by side

using Point = SvgPoint;

Point place(const Topology& topology, int node) {
  const Coordinates at = topology.coordinates(node);
  const double layer = at[2] * (topology.extents()[0] + 0.5) * kSpacing;
  return {kMargin + layer + at[0] * kSpacing, kTitle + kMargin + (topology.extents()[1] - 1 - at[1]) * kSpacing};
}

/// A unit vector: x to the right, y upwards as on paper, z aslant.
Point direction(LinkId link) {
  const double sign = link % 2 == 0 ? 1 : -1;
  const int dimension = link % 6 / 2;
  if (dimension == 0) return {sign, 0};
  if (dimension == 1) return {0, -sign};
  return {0.7 * sign, -0.7 * sign};
}

/// From grey (nothing) over yellow to red (the most).
std::string colour(double share) {
  if (share <= 0) return "#d0d0d0";
  return fmt::format("hsl({:.0f},90%,{:.0f}%)", 55 * (1 - share), 60 - 15 * share);
}

}  // namespace

std::string draw_links(const Topology& topology, std::span<const std::uint64_t> link_bytes) {
  const Coordinates& extents = topology.extents();
  const double width = 2 * kMargin + (extents[2] * (extents[0] + 0.5) - 1) * kSpacing;
  const double height = 2 * kMargin + kTitle + (extents[1] - 1) * kSpacing;
  const std::uint64_t most = std::max<std::uint64_t>(*std::ranges::max_element(link_bytes), 1);
  Svg svg(std::max(width, 420.0), height, 12);
  svg.text(10, 20, fmt::format("{}: bytes per link, at most {}", topology.text(), most));
  for (LinkId link = 0; link < static_cast<LinkId>(link_bytes.size()); ++link) {
    if (!link_exists(topology, link)) continue;
    const std::uint64_t bytes = link_bytes[static_cast<std::size_t>(link)];
    const Point from = place(topology, link / 6);
    const Point way = direction(link);
    const double share = static_cast<double>(bytes) / static_cast<double>(most);
    // To the right of the way, so that the two directions of a cable do not overlap.
    const double x = from.x - kAside * way.y;
    const double y = from.y + kAside * way.x;
    const double reach = 0.46 * kSpacing;
    svg.line({x, y}, {x + reach * way.x, y + reach * way.y},
             fmt::format("stroke={} stroke-width={:.1f}", colour(share), 1.5 + 2 * share),
             fmt::format("{} {}{}: {} bytes", link / 6, "xyz"[link % 6 / 2], link % 2 == 0 ? '+' : '-', bytes));
  }
  for (int node = 0; node < topology.nodes(); ++node) svg.circle(place(topology, node), 2.5);
  return svg.str();
}

std::string draw_time_line(int rank, int engines, const std::vector<simulated::EngineUse>& uses) {
  constexpr double kWidth = 1000;
  constexpr double kRow = 30;
  simulated::Time end = 1;
  for (const simulated::EngineUse& use : uses) end = std::max(end, use.end);
  const double end_us = static_cast<double>(end) / simulated::kPicosecondsPerMicrosecond;
  std::vector<int> peers;
  for (const simulated::EngineUse& use : uses) peers.push_back(use.peer);
  std::ranges::sort(peers);
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  const auto hue = [&](int peer) {
    return 360.0 * static_cast<double>(std::ranges::lower_bound(peers, peer) - peers.begin()) /
           static_cast<double>(peers.size());
  };
  const double height = kTitle + kRow * engines + 60;
  Svg svg(kWidth + 2 * kMargin, height, 12);
  svg.text(10, 20, fmt::format("engines of rank {}, 0 to {:.1f} us", rank, end_us));
  for (int engine = 0; engine < engines; ++engine) svg.text(10, kTitle + kRow * engine + 20, std::to_string(engine));
  const double scale = kWidth / static_cast<double>(end);
  for (const simulated::EngineUse& use : uses) {
    svg.rect({kMargin + scale * static_cast<double>(use.begin), kTitle + kRow * use.engine + 4},
             std::max(scale * static_cast<double>(use.end - use.begin), 0.3), kRow - 8,
             fmt::format("fill=hsl({:.0f},70%,55%)", hue(use.peer)),
             fmt::format("to {}: {} bytes, message {}", use.peer, use.bytes, use.message));
  }
  double x = kMargin;
  for (const int peer : peers) {
    svg.text(x, height - 20, fmt::format("to {}", peer), fmt::format("fill=hsl({:.0f},70%,45%)", hue(peer)));
    x += 70;
  }
  return svg.str();
}

}  // namespace torii::tools
