// SPDX-License-Identifier: Apache-2.0
// Schedules as text and as SVG.
#include "collectives/drawing/draw_schedule.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "collectives/drawing/svg.hpp"

namespace torii {
namespace {

constexpr double kLeafPitch = 58;
constexpr double kLevelPitch = 76;
constexpr double kTreeMargin = 40;
constexpr double kTreeTitleHeight = 56;
constexpr double kNodeRadius = 14;
constexpr double kRowHeight = 22;
constexpr double kChartWidth = 760;
constexpr double kChartLeft = 90;  // room for the names of ranks

using Point = SvgPoint;

std::string format(const char* form, double value) {
  char text[48];
  std::snprintf(text, sizeof(text), form, value);
  return text;
}
std::string milliseconds(double seconds) { return format("%.3f ms", 1e3 * seconds); }

std::string rate_text(std::int64_t bytes_per_second) {
  const auto rate = static_cast<double>(bytes_per_second);
  if (rate >= 1e9) return format("%g GB/s", rate / 1e9);
  if (rate >= 1e6) return format("%g MB/s", rate / 1e6);
  return rate >= 1e3 ? format("%g kB/s", rate / 1e3) : format("%g B/s", rate);
}

/// Early transfers are blue, late ones red.
std::string colour(double moment, double end) {
  return "hsl(" + svg_text(215 - 215 * (end > 0 ? moment / end : 0)) + ",70%,42%)";
}

/// Leaves side by side in depth-first order, the others above the middle of what hangs on them. The top is the node
/// from which the deepest leaf is nearest.
class TreePicture {
 public:
  explicit TreePicture(const TreeTopology& tree) : tree_(tree), places_(tree.nodes().size()) {
    const int one_end = farthest(0);
    const std::vector<TreeHop> longest = tree.way(one_end, farthest(one_end));
    int top = one_end;
    for (std::size_t i = 0; i < longest.size() / 2; ++i) top = tree.reaches(longest[i]);
    place(top, -1, 0);
  }

  Point at(int node) const { return places_[static_cast<std::size_t>(node)]; }
  double width() const { return next_leaf_ * kLeafPitch; }
  double height() const { return depth_most_ * kLevelPitch + 2 * kNodeRadius; }

 private:
  int farthest(int from) const {
    std::vector<std::pair<int, int>> open = {{from, -1}};
    for (std::size_t head = 0; head < open.size(); ++head) {
      for (const TreeHop hop : tree_.hops(open[head].first)) {
        if (hop.link != open[head].second) open.emplace_back(tree_.reaches(hop), hop.link);
      }
    }
    return open.back().first;
  }

  /// Without recursion: a tree may be a long chain.
  void place(int top, int came, int depth) {
    struct Visit {
      int node, came, depth;
      bool is_done;
    };
    std::vector<Visit> open = {{top, came, depth, false}};
    while (!open.empty()) {
      const Visit here = open.back();
      open.pop_back();
      Point& place = places_[static_cast<std::size_t>(here.node)];
      place.y = here.depth * kLevelPitch;
      depth_most_ = std::max(depth_most_, here.depth);
      double least = 1e300;
      double most = -1e300;
      if (!here.is_done) open.push_back({here.node, here.came, here.depth, true});
      const std::span<const TreeHop> hops = tree_.hops(here.node);
      for (auto hop = hops.rbegin(); hop != hops.rend(); ++hop) {
        if (hop->link == here.came) continue;
        if (!here.is_done) open.push_back({tree_.reaches(*hop), hop->link, here.depth + 1, false});
        least = std::min(least, at(tree_.reaches(*hop)).x);
        most = std::max(most, at(tree_.reaches(*hop)).x);
      }
      if (here.is_done) place.x = most < least ? kLeafPitch * next_leaf_++ : (least + most) / 2;
    }
  }

  const TreeTopology& tree_;
  std::vector<Point> places_;
  int next_leaf_ = 0;
  int depth_most_ = 0;
};

void draw_links(Svg& svg, const TreeTopology& tree, const TreePicture& picture, Point origin) {
  std::int64_t most = 1;
  for (const TreeLink& link : tree.links()) most = std::max({most, link.bandwidth[0], link.bandwidth[1]});
  for (const TreeLink& link : tree.links()) {
    const Point a = picture.at(link.ends[0]);
    const Point b = picture.at(link.ends[1]);
    const double share =
        static_cast<double>(std::min(link.bandwidth[0], link.bandwidth[1])) / static_cast<double>(most);
    const std::string rates = link.bandwidth[0] == link.bandwidth[1]
                                  ? rate_text(link.bandwidth[0])
                                  : rate_text(link.bandwidth[0]) + ", " + rate_text(link.bandwidth[1]);
    svg.line({origin.x + a.x, origin.y + a.y}, {origin.x + b.x, origin.y + b.y},
             "class=link stroke=#999999 stroke-width=" + svg_text(1 + 7 * std::sqrt(share)) +
                 (link.half_duplex ? " stroke-dasharray=6,4" : ""),
             rates + (link.half_duplex ? ", half duplex" : ""));
    svg.text(origin.x + (a.x + b.x) / 2, origin.y + (a.y + b.y) / 2, rates,
             "font-size=8 fill=#555555 text-anchor=middle");
  }
}

/// "0.000 ms to 86.957 ms"
std::string time_text(const Transfer& transfer) {
  return milliseconds(transfer.start_s) + " to " + milliseconds(transfer.end_s);
}

/// An arc below the leaves, the deeper the farther it goes, with its number at its lowest point.
void draw_arc(Svg& svg, Point from, Point to, std::size_t place, const std::string& stroke, const std::string& title) {
  const double depth = 24 + 0.28 * std::abs(to.x - from.x);
  const Point low = {(from.x + to.x) / 2, std::max(from.y, to.y) + depth};
  svg.path("M" + svg_text({from.x, from.y + kNodeRadius}) + "Q" + svg_text({low.x, low.y + depth / 2}) + " " +
               svg_text({to.x, to.y + kNodeRadius + 2}),
           "class=transfer fill=none stroke-width=1.6 marker-end=url(#head) stroke=" + stroke, title);
  svg.text(low.x, (low.y + depth / 2 + (from.y + to.y) / 2 + kNodeRadius) / 2 + 4, std::to_string(place + 1),
           "font-size=10 text-anchor=middle");
}

void draw_tree(Svg& svg, const TreeTopology& tree, const TreePicture& picture, const std::vector<Transfer>& transfers,
               double time_s, Point origin) {
  draw_links(svg, tree, picture, origin);
  const auto on_paper = [&](int node) { return Point{origin.x + picture.at(node).x, origin.y + picture.at(node).y}; };
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const Transfer& transfer = transfers[i];
    draw_arc(svg, on_paper(tree.node_of(transfer.sender)), on_paper(tree.node_of(transfer.receiver)), i,
             colour(transfer.start_s, time_s),
             std::to_string(transfer.sender) + " to " + std::to_string(transfer.receiver) + ", " + time_text(transfer));
  }
  for (std::size_t i = 0; i < tree.nodes().size(); ++i) {
    const auto& node = tree.nodes()[i];
    const Point at = on_paper(static_cast<int>(i));
    if (node.rank < 0) {
      svg.rect({at.x - 9, at.y - 9}, 18, 18, "class=relay fill=#dddddd stroke=#333333", node.name);
      continue;
    }
    svg.circle(at, kNodeRadius, "class=rank fill=#f4f4f4 stroke=#333333", node.name);
    svg.text(at.x, at.y + 4, std::to_string(node.rank), "text-anchor=middle");
  }
}

void draw_gantt(Svg& svg, int ranks, const std::vector<Transfer>& transfers, double time_s, Point origin) {
  const double scale = time_s > 0 ? kChartWidth / time_s : 0;
  const double left = origin.x + kChartLeft;
  for (int rank = 0; rank < ranks; ++rank) {
    const double y = origin.y + rank * kRowHeight;
    svg.text(left - 8, y + 15, "rank " + std::to_string(rank), "text-anchor=end");
    svg.line({left, y + kRowHeight}, {left + kChartWidth, y + kRowHeight}, "stroke=#eeeeee");
  }
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const Transfer& transfer = transfers[i];
    const double x = left + transfer.start_s * scale;
    const double y = origin.y + transfer.receiver * kRowHeight + 3;
    const double width = std::max(1.0, (transfer.end_s - transfer.start_s) * scale);
    const std::string label =
        std::to_string(i + 1) + ": " + std::to_string(transfer.sender) + ">" + std::to_string(transfer.receiver);
    svg.rect({x, y}, width, kRowHeight - 5, "class=bar fill=" + colour(transfer.start_s, time_s),
             label + ", " + time_text(transfer));
    const bool fits = width > 8.0 * static_cast<double>(label.size());
    svg.text(fits ? x + 4 : x - 4, y + 12, label, fits ? "font-size=10 fill=white" : "font-size=10 text-anchor=end");
  }
  const double bottom = origin.y + ranks * kRowHeight;
  for (int tick = 0; tick <= 4; ++tick) {
    const double x = left + kChartWidth * tick / 4;
    svg.line({x, bottom}, {x, bottom + 5}, "stroke=#333333");
    svg.text(x, bottom + 18, milliseconds(time_s * tick / 4), "font-size=10 text-anchor=middle");
  }
}

/// A reduce sends what a broadcast receives, as long before its end as that comes after the beginning.
std::vector<Transfer> in_running_order(const Schedule& schedule, bool backwards) {
  std::vector<Transfer> transfers = schedule.transfers;
  if (!backwards) return transfers;
  for (Transfer& transfer : transfers) {
    transfer = {
        transfer.receiver, transfer.sender, schedule.time_s - transfer.end_s, schedule.time_s - transfer.start_s, {}};
  }
  std::stable_sort(transfers.begin(), transfers.end(),
                   [](const Transfer& a, const Transfer& b) { return a.start_s < b.start_s; });
  return transfers;
}

}  // namespace

std::string draw_schedule_text(const Schedule& schedule) {
  std::string text;
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& transfer = schedule.transfers[i];
    text += std::to_string(i + 1) + ". " + time_text(transfer) + ": " + std::to_string(transfer.sender) + " > " +
            std::to_string(transfer.receiver);
    for (const int before : transfer.after) {
      text += (before == transfer.after.front() ? ", after " : ", ") + std::to_string(before + 1);
    }
    text += "\n";
  }
  return text;
}

std::string draw_schedule_svg(const TreeTopology& tree, const Schedule& schedule, const std::string& title,
                              bool backwards) {
  const TreePicture picture(tree);
  const std::vector<Transfer> transfers = in_running_order(schedule, backwards);
  const double arcs_height = 40 + 0.22 * picture.width();
  const double chart_top = kTreeTitleHeight + kTreeMargin + picture.height() + arcs_height;
  const double width = std::max(picture.width() + kLeafPitch, kChartLeft + kChartWidth + kTreeMargin) + 2 * kTreeMargin;
  const double height = chart_top + tree.ranks() * kRowHeight + kTreeMargin;
  Svg svg(width, height, 12);
  svg.title(title);
  svg.text(kTreeMargin, 34, title, "font-size=18");
  svg.arrow_head("head", "#333333");
  draw_tree(svg, tree, picture, transfers, schedule.time_s,
            {kTreeMargin + kLeafPitch / 2, kTreeTitleHeight + kTreeMargin});
  draw_gantt(svg, tree.ranks(), transfers, schedule.time_s, {kTreeMargin, chart_top});
  return svg.str();
}

}  // namespace torii
