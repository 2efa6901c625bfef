// SPDX-License-Identifier: Apache-2.0
// Links and time lines as lines, bars and words.
#include "tools/torii-sim/pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "runtime/base/status.hpp"
#include "runtime/topology/routing.hpp"

namespace torii::tools {
namespace {

constexpr double kSpacing = 40;  // between nodes
constexpr double kMargin = 40;
constexpr double kTitle = 30;
constexpr double kAside = 3;  // the two directions of a cable are drawn side by side

struct Point {
  double x;
  double y;
};

std::string head(double width, double height, const std::string& title) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"10\" y=\"20\">{2}</text>\n",
      width, height, title);
}

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
  std::string svg =
      head(std::max(width, 420.0), height, fmt::format("{}: bytes per link, at most {}", topology.text(), most));
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
    svg += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"{:.1f}\">"
        "<title>{} {}{}: {} bytes</title></line>\n",
        x, y, x + reach * way.x, y + reach * way.y, colour(share), 1.5 + 2 * share, link / 6, "xyz"[link % 6 / 2],
        link % 2 == 0 ? '+' : '-', bytes);
  }
  for (int node = 0; node < topology.nodes(); ++node) {
    const Point at = place(topology, node);
    svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\"/>\n", at.x, at.y);
  }
  return svg + "</svg>\n";
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
  std::string svg = head(kWidth + 2 * kMargin, height, fmt::format("engines of rank {}, 0 to {:.1f} us", rank, end_us));
  for (int engine = 0; engine < engines; ++engine) {
    svg += fmt::format("<text x=\"10\" y=\"{:.0f}\">{}</text>\n", kTitle + kRow * engine + 20, engine);
  }
  const double scale = kWidth / static_cast<double>(end);
  for (const simulated::EngineUse& use : uses) {
    svg += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.0f}\" width=\"{:.2f}\" height=\"{:.0f}\" fill=\"hsl({:.0f},70%,55%)\">"
        "<title>to {}: {} bytes, message {}</title></rect>\n",
        kMargin + scale * static_cast<double>(use.begin), kTitle + kRow * use.engine + 4,
        std::max(scale * static_cast<double>(use.end - use.begin), 0.3), kRow - 8, hue(use.peer), use.peer, use.bytes,
        use.message);
  }
  double x = kMargin;
  for (const int peer : peers) {
    svg += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" fill=\"hsl({:.0f},70%,45%)\">to {}</text>\n", x, height - 20,
                       hue(peer), peer);
    x += 70;
  }
  return svg + "</svg>\n";
}

void write_picture(const std::string& path, const std::string& picture) {
  const auto close = [](std::FILE* file) {
    if (file != stdout) std::fclose(file);
  };
  const std::unique_ptr<std::FILE, decltype(close)> file(path == "-" ? stdout : std::fopen(path.c_str(), "we"), close);
  if (!file || std::fwrite(picture.data(), 1, picture.size(), file.get()) != picture.size() ||
      std::fflush(file.get()) != 0) {
    throw Error(Status::invalid_argument, "cannot write '" + path + "': " + std::strerror(errno));
  }
}

}  // namespace torii::tools
