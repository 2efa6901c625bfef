// SPDX-License-Identifier: Apache-2.0
// Writes the loads of links as JSON, and as lines and circles.
#include "tools/torii-lab/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "collectives/drawing/svg.hpp"
#include "runtime/topology/topology.hpp"

namespace torii::tools {
namespace {

using Point = SvgPoint;

constexpr double kSpacing = 150;  // between nodes
constexpr double kRadius = 20;    // of a node
constexpr double kArrow = 48;     // length of a link's arrow
constexpr double kAside = 5;      // the two directions of a cable are drawn side by side
constexpr double kMargin = 110;
constexpr double kTitles = 40;     // above all, with one line of the command
constexpr double kTitleLine = 16;  // of the command
constexpr double kRailSpacing = 40;

double share_of(const LabReport& report, const LabDevice& device, const LinkCount& load) {
  return report.seconds > 0 ? static_cast<double>(load.bytes) * 8 / (device.rate_mbit * 1e6 * report.seconds) : 0;
}

/// The bytes of all links, in calls of the plan. They include headers, credits and the start of the job.
double plan_calls(const LabReport& report) {
  double carried = 0;
  double predicted = 0;
  for (std::size_t node = 0; node < report.loads.size(); ++node) {
    for (std::size_t device = 0; device < report.loads[node].size(); ++device) {
      carried += static_cast<double>(report.loads[node][device].bytes);
      predicted += static_cast<double>(report.prediction->bytes[node][device]);
    }
  }
  return predicted > 0 ? carried / predicted : 0;
}

/// 1 if a link has carried the share of all bytes that the plan gives it; nothing if the plan does not use it.
std::optional<double> of_plan(const LabReport& report, std::size_t node, std::size_t device) {
  const double expected = static_cast<double>(report.prediction->bytes[node][device]) * plan_calls(report);
  if (expected == 0) return std::nullopt;
  return static_cast<double>(report.loads[node][device].bytes) / expected;
}

std::string command_text(const LabReport& report) {
  std::string text;
  for (const std::string& word : report.command) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string bytes_in_words(std::uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes >= 1'000'000'000) return fmt::format("{:.3g} GB", value / 1e9);
  if (bytes >= 1'000'000) return fmt::format("{:.3g} MB", value / 1e6);
  return bytes >= 1000 ? fmt::format("{:.3g} kB", value / 1e3) : fmt::format("{} B", bytes);
}

/// The text in lines of at most `columns` characters, broken at blanks where there are any.
std::vector<std::string> lines_of(std::string_view text, std::size_t columns) {
  std::vector<std::string> lines;
  while (text.size() > columns) {
    const std::size_t blank = text.rfind(' ', columns);
    const bool breaks = blank != std::string_view::npos && blank > 0;
    lines.emplace_back(text.substr(0, breaks ? blank : columns));
    text.remove_prefix(breaks ? blank + 1 : columns);
  }
  lines.emplace_back(text);
  return lines;
}

/// The place of a node, and where its links leave it. Above all are the titles.
class Layout {
 public:
  explicit Layout(const LabNetwork& network)
      : network_(network), is_torus_(!network.topology.empty() && !network.nodes[0].switching) {
    if (is_torus_) topology_ = Topology::parse(network.topology, static_cast<int>(network.nodes.size()));
  }
  /// Makes room for more titles.
  void lower_by(double height) { titles_ += height; }
  Point node(int node) const {
    if (!is_torus_) {
      const double* const place = network_.nodes[static_cast<std::size_t>(node)].place;
      return {kMargin + place[0] * kSpacing, kMargin + titles_ + place[1] * kSpacing};
    }
    const Coordinates at = topology_.coordinates(node);
    const double layer = at[2] * ((topology_.extents()[0] - 1) * kSpacing + 1.6 * kSpacing);
    // y grows upwards, as on paper.
    return {kMargin + layer + at[0] * kSpacing, titles_ + kMargin + (topology_.extents()[1] - 1 - at[1]) * kSpacing};
  }
  /// A unit vector.
  Point direction(const LabDevice& device, int node) const {
    if (!is_torus_) {
      const Point here = this->node(node);
      const Point there = this->node(device.peer);
      const double length = std::hypot(there.x - here.x, there.y - here.y);
      return {(there.x - here.x) / length, (there.y - here.y) / length};
    }
    const double sign = device.name[1] == 'p' ? 1 : -1;
    if (device.name[0] == 'x') return {sign, 0};
    if (device.name[0] == 'y') return {0, -sign};
    return {0.7071 * sign, -0.7071 * sign};
  }
  /// The distance between the rails of a node; other devices have directions of their own.
  double shift(std::size_t device) const {
    return !is_torus_ && !network_.nodes[0].switching ? static_cast<double>(device) * kRailSpacing : 0;
  }
  Point size() const {
    Point far;
    for (int one = 0; one < static_cast<int>(network_.nodes.size()); ++one) {
      far.x = std::max(far.x, node(one).x);
      far.y = std::max(far.y, node(one).y + shift(network_.nodes[0].devices.size()));
    }
    return {far.x + kMargin, far.y + kMargin};
  }

 private:
  const LabNetwork& network_;
  bool is_torus_;
  Topology topology_;
  double titles_ = kTitles;
};

void draw_arrow(Svg& svg, const LabReport& report, const Layout& layout, int node, std::size_t device,
                std::uint64_t most) {
  const LabDevice& link = report.network->nodes[static_cast<std::size_t>(node)].devices[device];
  const LinkCount& load = report.loads[static_cast<std::size_t>(node)][device];
  const double share = most > 0 ? static_cast<double>(load.bytes) / static_cast<double>(most) : 0;
  const Point way = layout.direction(link, node);
  const Point centre = layout.node(node);
  // Shifted to the right of the direction of travel, so that the two directions of a cable do not overlap.
  const Point start{centre.x + kRadius * way.x - kAside * way.y,
                    centre.y + kRadius * way.y + kAside * way.x + layout.shift(device)};
  const Point end{start.x + kArrow * way.x, start.y + kArrow * way.y};
  const Point label{start.x + 0.55 * kArrow * way.x - 24 * way.y, start.y + 0.55 * kArrow * way.y + 11 * way.x + 3};
  std::string title =
      fmt::format("{} {} to {}: {} bytes, {} packets, {:.1f} % of {} Mbit/s", node, link.name, link.peer, load.bytes,
                  load.packets, 100 * share_of(report, link, load), link.rate_mbit);
  if (report.prediction) {
    const auto part = of_plan(report, static_cast<std::size_t>(node), device);
    title += part ? fmt::format(", {:.1f} % of the plan", 100 * *part) : ", none of it planned";
  }
  svg.line(start, end,
           fmt::format("stroke=rgb({0:.0f},{1:.0f},{1:.0f}) stroke-width={2:.1f} marker-end=url(#head)",
                       190 + 30 * share, 190 * (1 - share), 1.5 + 3 * share),
           title);
  svg.text(label.x, label.y, bytes_in_words(load.bytes), "font-size=9 fill=#444 text-anchor=middle", title);
}

}  // namespace

std::vector<std::vector<LinkCount>> loads_between(const std::vector<std::vector<LinkCount>>& before,
                                                  const std::vector<std::vector<LinkCount>>& after) {
  std::vector<std::vector<LinkCount>> loads = after;
  for (std::size_t node = 0; node < loads.size(); ++node) {
    for (std::size_t device = 0; device < loads[node].size(); ++device) {
      loads[node][device].bytes -= before[node][device].bytes;
      loads[node][device].packets -= before[node][device].packets;
    }
  }
  return loads;
}

std::string report_json(const LabReport& report) {
  nlohmann::ordered_json links = nlohmann::ordered_json::array();
  std::uint64_t total = 0;
  std::uint64_t most = 0;
  for (std::size_t node = 0; node < report.loads.size(); ++node) {
    for (std::size_t device = 0; device < report.loads[node].size(); ++device) {
      const LabDevice& link = report.network->nodes[node].devices[device];
      const LinkCount& load = report.loads[node][device];
      total += load.bytes;
      most = std::max(most, load.bytes);
      links.push_back({{"from", node},
                       {"to", link.peer},
                       {"device", link.name},
                       {"rate_mbit", link.rate_mbit},
                       {"bytes", load.bytes},
                       {"packets", load.packets},
                       {"share", share_of(report, link, load)}});
      if (!report.prediction) continue;
      links.back()["plan_bytes"] = report.prediction->bytes[node][device];
      const auto part = of_plan(report, node, device);
      links.back()["of_plan"] = part ? nlohmann::ordered_json(*part) : nlohmann::ordered_json();
    }
  }
  nlohmann::ordered_json whole{{"network", report.network->text},
                               {"nodes", report.network->nodes.size()},
                               {"command", report.command},
                               {"exit_code", report.exit_code},
                               {"seconds", report.seconds},
                               {"bytes", total},
                               {"bytes_most", most},
                               {"links", links}};
  if (report.prediction) {
    whole["plan"] = report.prediction->text;
    whole["plan_calls"] = plan_calls(report);
  }
  return whole.dump() + "\n";
}

std::string report_plan(const LabReport& report) {
  std::string text = fmt::format("{}: the bytes of all links are those of {:.3g} calls\n", report.prediction->text,
                                 plan_calls(report));
  text += fmt::format("{:>4} {:>4} {:>6} {:>14} {:>14} {:>9}\n", "from", "to", "device", "plan B/call", "carried B",
                      "of plan %");
  for (std::size_t node = 0; node < report.loads.size(); ++node) {
    for (std::size_t device = 0; device < report.loads[node].size(); ++device) {
      const LabDevice& link = report.network->nodes[node].devices[device];
      const auto part = of_plan(report, node, device);
      text += fmt::format("{:>4} {:>4} {:>6} {:>14} {:>14} {:>9}\n", node, link.peer, link.name,
                          report.prediction->bytes[node][device], report.loads[node][device].bytes,
                          part ? fmt::format("{:.1f}", 100 * *part) : "-");
    }
  }
  return text;
}

std::string report_svg(const LabReport& report) {
  Layout layout(*report.network);
  // A character of 12 takes 7 on average, the widest mixtures less than 8.
  const auto columns = static_cast<std::size_t>((layout.size().x - 32) / 7.2);
  const std::vector<std::string> command = lines_of(report.network->text + ": " + command_text(report), columns);
  layout.lower_by(kTitleLine * static_cast<double>(command.size() - 1));
  std::uint64_t most = 0;
  std::uint64_t total = 0;
  for (const auto& node : report.loads) {
    for (const LinkCount& load : node) {
      most = std::max(most, load.bytes);
      total += load.bytes;
    }
  }
  const Point size = layout.size();
  Svg svg(size.x, size.y, 12);
  svg.arrow_head("head", "#600", 9, "markerUnits=userSpaceOnUse");
  double y = 24;
  for (const std::string& line : command) {
    svg.text(16, y, line);
    y += kTitleLine;
  }
  svg.text(16, y + 4,
           fmt::format("{} in {:.3g} s over all links, {} on the busiest", bytes_in_words(total), report.seconds,
                       bytes_in_words(most)),
           "fill=#555");
  for (int node = 0; node < static_cast<int>(report.loads.size()); ++node) {
    const std::size_t devices = report.loads[static_cast<std::size_t>(node)].size();
    for (std::size_t device = 0; device < devices; ++device) draw_arrow(svg, report, layout, node, device, most);
    const Point at = layout.node(node);
    const double depth = layout.shift(devices > 0 ? devices - 1 : 0);
    svg.rect({at.x - kRadius, at.y - kRadius}, 2 * kRadius, 2 * kRadius + depth,
             fmt::format("rx={:.1f} fill=#eef stroke=#336", kRadius));
    svg.text(at.x, at.y + depth / 2 + 5, std::to_string(node), "font-size=13 text-anchor=middle");
  }
  return svg.str();
}

}  // namespace torii::tools
