// SPDX-License-Identifier: Apache-2.0
// Plans as a picture: ranks on their grid, streams as arrows.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <vector>

#include "collectives/building/exchange_expansion.hpp"
#include "collectives/drawing/draw.hpp"
#include "collectives/drawing/svg.hpp"
#include "runtime/base/status.hpp"

namespace torii {
namespace {

constexpr double kPitch = 96;   // between neighbouring ranks, at least
constexpr double kDepthX = 44;  // from one layer of z to the next
constexpr double kDepthY = 32;
constexpr double kMargin = 30;
constexpr double kTitleHeight = 56;
constexpr double kLegendLine = 20;
constexpr double kLegendWidth = 230;
constexpr double kRankRadius = 15;
constexpr double kMateDistance = 40;  // between ranks of one node of a grid
constexpr std::size_t kLegendMost = 24;

using Point = SvgPoint;

/// One look of an arrow. Streams whose flows have one label and carry the same block look alike.
struct Style {
  std::string_view label;
  int block = 0;  ///< kSeveralBlocks when the stream carries more than one
  int dash = 0;   ///< how many styles of the same block came before
};
constexpr int kSeveralBlocks = -1;

struct Arrow {
  int sender = 0;
  int receiver = 0;
  int tag = 0;
  std::size_t style = 0;
};

struct Picture {
  std::vector<Point> ranks;
  double pitch = kPitch;  // between neighbours along x and y
  double width = 0;
  double height = 0;
};

/// Colours that stay apart for most colour-blind readers; further blocks turn round the colour circle.
std::string colour(int block) {
  constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};
  if (block == kSeveralBlocks) return "#555555";
  if (block < static_cast<int>(std::size(kColours))) return kColours[block];
  return "hsl(" + std::to_string(block * 137 % 360) + ",65%,42%)";
}

std::string dashes(int dash) {
  constexpr const char* kDashes[] = {"", "7,4", "2,3", "9,3,2,3"};
  return kDashes[static_cast<std::size_t>(dash) % std::size(kDashes)];
}

/// A node is a circle, and so are the ranks of a tree, whose links draw_schedule_svg() shows. On a grid x goes right
/// and y down; layers of z are behind each other, to the right and upwards. Ranks that share a place of the grid are
/// next to each other.
Picture place_ranks(const Topology& topology) {
  Picture picture;
  const int ranks = topology.ranks();
  picture.ranks.resize(static_cast<std::size_t>(ranks));
  const bool node = topology.kind() != Topology::Kind::torus;
  const double radius = kPitch * std::max(1.0, ranks / (2 * std::numbers::pi));
  const int layers = topology.extents()[2];
  const double mates_width = node ? 0 : (topology.per_node() - 1) * kMateDistance;
  picture.pitch = node ? kPitch : std::max(kPitch, kDepthX * layers + 3 * kRankRadius) + mates_width;
  for (int rank = 0; rank < ranks; ++rank) {
    const double angle = 2 * std::numbers::pi * rank / ranks - std::numbers::pi / 2;
    const Coordinates at = topology.coordinates(rank);
    const double mate = node ? 0 : topology.place_of(rank) * kMateDistance;
    picture.ranks[rank] =
        node ? Point{radius * std::cos(angle), radius * std::sin(angle)}
             : Point{at[0] * picture.pitch + at[2] * kDepthX + mate, at[1] * picture.pitch - at[2] * kDepthY};
  }
  return picture;
}

std::size_t style_of(std::vector<Style>& styles, std::string_view label, int block) {
  int dash = 0;
  for (std::size_t i = 0; i < styles.size(); ++i) {
    if (styles[i].block != block) continue;
    if (styles[i].label == label) return i;
    ++dash;
  }
  styles.push_back({label, block, dash});
  return styles.size() - 1;
}

std::vector<Arrow> collect_arrows(std::span<const Plan> plans, std::vector<Style>& styles) {
  std::vector<Arrow> arrows;
  for (const Plan& plan : plans) {
    for (std::size_t s = 0; s < plan.out.size(); ++s) {
      const Flow* feeder = nullptr;
      int block = kSeveralBlocks;
      for (const Lane& lane : plan.lanes) {
        for (const Flow& flow : lane.flows) {
          const bool feeds = std::any_of(flow.targets.begin(), flow.targets.end(),
                                         [&](const StreamEnd& target) { return target.stream == s; });
          if (!feeds) continue;
          const bool first = feeder == nullptr;
          block = first && flow.walk.count == 1 ? flow.walk.block(0) : kSeveralBlocks;
          if (first) feeder = &flow;
        }
      }
      if (feeder == nullptr) continue;
      const Stream& stream = plan.out[s];
      arrows.push_back({plan.rank, stream.peer, stream.tag, style_of(styles, feeder->label, block)});
    }
  }
  return arrows;
}

std::string head_id(int block) { return block == kSeveralBlocks ? "several" : "block" + std::to_string(block); }

void draw_arrow_heads(Svg& svg, const std::vector<Style>& styles) {
  std::set<int> blocks;
  for (const Style& style : styles) blocks.insert(style.block);
  for (const int block : blocks) svg.arrow_head(head_id(block), colour(block));
}

std::string stroke(const Style& style) {
  const std::string pattern = dashes(style.dash);
  return "stroke=" + colour(style.block) + " stroke-width=1.6 fill=none marker-end=url(#" + head_id(style.block) + ")" +
         (pattern.empty() ? "" : " stroke-dasharray=" + pattern);
}

/// The point towards which an arrow bends: to the right of its direction, so that the two directions of a pair stay
/// apart. Long ways, which go round the ranks between, bend more, and each style bends differently.
Point bend_of(const Picture& picture, const Arrow& arrow) {
  const Point from = picture.ranks[arrow.sender];
  const Point to = picture.ranks[arrow.receiver];
  const double length = std::hypot(to.x - from.x, to.y - from.y);
  const double far = std::max(0.0, length - 1.5 * picture.pitch);
  const double bend = 8 + 9 * static_cast<double>(arrow.style % 6) + 0.25 * far;
  return {(from.x + to.x) / 2 - (to.y - from.y) / length * bend, (from.y + to.y) / 2 + (to.x - from.x) / length * bend};
}

double loop_of(const Arrow& arrow) { return kRankRadius + 6 + 3 * static_cast<double>(arrow.style % 4); }

std::string arrow_path(const Picture& picture, const Arrow& arrow) {
  const Point from = picture.ranks[arrow.sender];
  const Point to = picture.ranks[arrow.receiver];
  if (arrow.sender == arrow.receiver) {
    const double loop = loop_of(arrow);
    const double top = from.y - 2 * loop;
    const double rim = from.y - kRankRadius;
    return "M" + svg_text({from.x - 6, rim}) + "C" + svg_text({from.x - loop, top}) + " " +
           svg_text({from.x + loop, top}) + " " + svg_text({from.x + 6, rim});
  }
  const Point middle = bend_of(picture, arrow);
  const auto rim = [&](Point centre, double gap) {
    const double reach = std::hypot(middle.x - centre.x, middle.y - centre.y);
    return Point{centre.x + (middle.x - centre.x) / reach * gap, centre.y + (middle.y - centre.y) / reach * gap};
  };
  const Point start = rim(from, kRankRadius);
  const Point end = rim(to, kRankRadius + 1);
  return "M" + svg_text(start) + "Q" + svg_text(middle) + " " + svg_text(end);
}

/// Moves everything below the title and sets the size, so that no rank and no arrow is cut off.
void fit(Picture& picture, const std::vector<Arrow>& arrows) {
  Point least = picture.ranks.front();
  Point most = least;
  const auto include = [&](Point point, double around) {
    least = {std::min(least.x, point.x - around), std::min(least.y, point.y - around)};
    most = {std::max(most.x, point.x + around), std::max(most.y, point.y + around)};
  };
  for (const Point& rank : picture.ranks) include(rank, kRankRadius);
  for (const Arrow& arrow : arrows) {
    const Point from = picture.ranks[arrow.sender];
    if (arrow.sender == arrow.receiver) {
      include(from, 2 * loop_of(arrow));
      continue;
    }
    const Point to = picture.ranks[arrow.receiver];
    const Point middle = bend_of(picture, arrow);
    include({(from.x + 2 * middle.x + to.x) / 4, (from.y + 2 * middle.y + to.y) / 4}, 0);  // the top of the curve
  }
  for (Point& rank : picture.ranks) rank = {rank.x - least.x + kMargin, rank.y - least.y + kMargin + kTitleHeight};
  picture.width = most.x - least.x + 2 * kMargin + kLegendWidth;
  picture.height = most.y - least.y + 2 * kMargin + kTitleHeight;
}

std::string style_text(const Style& style) {
  const std::string label(style.label.empty() ? "flow" : style.label);
  return label + (style.block == kSeveralBlocks ? ", several blocks" : ", block " + std::to_string(style.block));
}

void draw_legend(Svg& svg, const std::vector<Style>& styles, double left) {
  double y = kTitleHeight + kLegendLine;
  for (std::size_t i = 0; i < std::min(styles.size(), kLegendMost); ++i, y += kLegendLine) {
    svg.path("M" + svg_text({left, y - 4}) + "h36", stroke(styles[i]));
    svg.text(left + 44, y, style_text(styles[i]));
  }
  if (styles.size() > kLegendMost) {
    svg.text(left, y, "and " + std::to_string(styles.size() - kLegendMost) + " more");
  }
}

std::string title_of(const PlanRequest& request) {
  std::string title = std::string(name(request.collective)) + " on " + request.topology.text();
  if (request.topology.kind() == Topology::Kind::node)
    title += " of " + std::to_string(request.topology.ranks()) + " ranks";
  if (has_root(request.collective)) title += ", root " + std::to_string(request.root);
  return title;
}

}  // namespace

std::string draw_svg(const PlanRequest& request, std::span<const Plan> plans) {
  const int ranks = request.topology.ranks();
  if (static_cast<int>(plans.size()) != ranks) {
    throw Error(Status::invalid_argument, "a picture of " + std::to_string(ranks) +
                                              " ranks needs all their plans, got " + std::to_string(plans.size()));
  }
  if (ranks > kRanksDrawnMost) {
    throw Error(Status::invalid_argument, "a picture of " + std::to_string(ranks) +
                                              " ranks could not be read; at most " + std::to_string(kRanksDrawnMost) +
                                              " are drawn");
  }
  Picture picture = place_ranks(request.topology);
  std::vector<Style> styles;
  const std::vector<Arrow> arrows = collect_arrows(expand_exchanges(plans, Delivery::through_slots), styles);
  fit(picture, arrows);
  const double legend_bottom =
      kTitleHeight + kLegendLine * static_cast<double>(std::min(styles.size(), kLegendMost) + 3);
  Svg svg(picture.width, std::max(picture.height, legend_bottom), 12);
  const std::string title = title_of(request);
  svg.title(title);
  svg.text(kMargin, 34, title, "font-size=18");
  draw_arrow_heads(svg, styles);
  for (const Arrow& arrow : arrows) {
    const Style& style = styles[arrow.style];
    svg.path(arrow_path(picture, arrow), "class=stream " + stroke(style),
             std::to_string(arrow.sender) + " to " + std::to_string(arrow.receiver) + ": " + style_text(style));
  }
  for (int rank = 0; rank < ranks; ++rank) {
    const Point at = picture.ranks[rank];
    const bool root = has_root(request.collective) && rank == request.root;
    svg.circle(at, kRankRadius, std::string("class=rank stroke=#333333 fill=") + (root ? "#ffe9a8" : "#f4f4f4"));
    svg.text(at.x, at.y + 4, std::to_string(rank), "text-anchor=middle");
  }
  draw_legend(svg, styles, picture.width - kLegendWidth + 10);
  return svg.str();
}

}  // namespace torii
