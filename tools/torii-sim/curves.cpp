// SPDX-License-Identifier: Apache-2.0
// Draws curves and bars with axes, a grid and a legend beside them.
#include "tools/torii-sim/curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>

#include "collectives/drawing/axes.hpp"

namespace torii::tools {
namespace {

constexpr double kLeft = 70;
constexpr double kTop = 50;
constexpr double kWidth = 480;
constexpr double kHeight = 320;
constexpr double kPaperWidth = 780;
constexpr std::array<std::string_view, 6> kColors = {"#1b6ca8", "#c0392b", "#2e8b57", "#d68910", "#7d3c98", "#5d6d7e"};

/// The place of x on its axis.
double place_of(const CurveChart& chart, int x) { return chart.x_is_log ? std::log10(x) : x; }

Axes axes_of(const CurveChart& chart) {
  Axes axes{{kLeft, kTop}, kWidth, kHeight, chart.y_is_log};
  for (const Curve& curve : chart.curves) {
    for (const auto& [x, y] : curve.points) axes.include(place_of(chart, x), y);
  }
  if (chart.level > 0) axes.include(axes.x_low, chart.level);
  axes.round();
  return axes;
}

/// The label of a power of 2 of bytes.
std::string size_text(int power) {
  constexpr std::array<std::string_view, 5> kUnits = {"", "K", "M", "G", "T"};
  const auto unit = static_cast<std::size_t>(std::clamp(power / 10, 0, 4));
  return fmt::format("{}{}", 1LL << (power - 10 * static_cast<int>(unit)), kUnits[unit]);
}

std::string number_text(double value) { return fmt::format("{:.6g}", value); }

std::string x_text(const CurveChart& chart, int x) {
  if (chart.x_is_log) return fmt::format("10^{}", x);
  return chart.x_is_size ? size_text(x) : std::to_string(x);
}

void draw_axes(Svg& svg, const CurveChart& chart, const Axes& axes) {
  constexpr double kRight = kLeft + kWidth;
  constexpr double kBottom = kTop + kHeight;
  axes.draw_steps(svg, number_text);
  const int low = static_cast<int>(std::ceil(axes.x_low));
  const int high = static_cast<int>(std::floor(axes.x_high));
  for (int x = low; x <= high; x += std::max(1, (high - low + 15) / 16)) {
    svg.text(axes.at(x, axes.y_high).x, kBottom + 18, x_text(chart, x), "text-anchor=middle");
  }
  svg.line({kLeft, kTop}, {kLeft, kBottom}, "stroke=#333");
  svg.line({kLeft, kBottom}, {kRight, kBottom}, "stroke=#333");
  svg.text(kLeft + kWidth / 2, kBottom + 38, chart.x_name, "text-anchor=middle");
  svg.text(kLeft, kTop - 10, chart.y_name);
  if (chart.level > 0) {
    const double y = axes.at(axes.x_low, chart.level).y;
    svg.line({kLeft, y}, {kRight, y}, "stroke=#333 stroke-dasharray=2,3");
    svg.text(kRight + 6, y + 4, chart.level_name);
  }
}

}  // namespace

std::string draw_bars(const BarChart& chart) {
  constexpr double kNames = 210;  // to the left of the bars
  constexpr double kLong = 520;
  constexpr double kRow = 34;
  double most = 0;
  for (const BarChart::Bar& bar : chart.bars) {
    most = std::max(most, std::accumulate(bar.parts.begin(), bar.parts.end(), 0.0));
  }
  const double step = even_step(most);
  const double end = step * std::ceil(most / step);
  const double bottom = kTop + kRow * static_cast<double>(chart.bars.size());
  Svg svg(kPaperWidth, bottom + 90, 12);
  svg.text(kLeft, 22, chart.title, "font-size=15");
  for (int i = 0; i <= static_cast<int>(std::lround(end / step)); ++i) {
    const double x = kNames + kLong * i * step / end;
    svg.line({x, kTop}, {x, bottom}, "stroke=#ddd");
    svg.text(x, bottom + 16, number_text(i * step), "text-anchor=middle");
  }
  svg.text(kNames + kLong / 2, bottom + 36, chart.x_name, "text-anchor=middle");
  double y = kTop;
  for (const BarChart::Bar& bar : chart.bars) {
    svg.text(kNames - 8, y + 20, bar.name, "text-anchor=end");
    double x = kNames;
    for (std::size_t part = 0; part < bar.parts.size(); ++part) {
      const double width = kLong * bar.parts[part] / end;
      svg.rect({x, y + 4}, width, kRow - 8, fmt::format("fill={}", kColors[part]),
               fmt::format("{}: {}", chart.part_names[part], number_text(bar.parts[part])));
      x += width;
    }
    y += kRow;
  }
  double x = kLeft;
  for (std::size_t part = 0; part < chart.part_names.size(); ++part) {
    svg.rect({x, bottom + 56}, 12, 12, fmt::format("fill={}", kColors[part]));
    svg.text(x + 18, bottom + 66, chart.part_names[part]);
    x += 32 + 7.0 * static_cast<double>(chart.part_names[part].size());
  }
  return svg.str();
}

std::string draw_curves(const CurveChart& chart) {
  const Axes axes = axes_of(chart);
  Svg svg(kPaperWidth, 430, 12);
  svg.text(kLeft, 22, chart.title, "font-size=15");
  draw_axes(svg, chart, axes);
  std::size_t color = 0;
  double legend = kTop + 8;
  for (std::size_t i = 0; i < chart.curves.size(); ++i) {
    const Curve& curve = chart.curves[i];
    if (i > 0 && !curve.dashed) ++color;
    const std::string stroke = fmt::format("stroke={} stroke-width=2{}", kColors[color % kColors.size()],
                                           curve.dashed ? " stroke-dasharray=6,4" : "");
    std::vector<SvgPoint> points;
    for (const auto& [x, y] : curve.points) points.push_back(axes.at(place_of(chart, x), y));
    svg.polyline(points, stroke);
    svg.line({kLeft + kWidth + 16, legend}, {kLeft + kWidth + 40, legend}, stroke);
    svg.text(kLeft + kWidth + 46, legend + 4, curve.name);
    legend += 20;
  }
  return svg.str();
}

}  // namespace torii::tools
