// SPDX-License-Identifier: Apache-2.0
// Draws small panels with a line per series.
#include "perf/common/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collectives/drawing/axes.hpp"
#include "runtime/base/numbers.hpp"

namespace torii::perf {
namespace {

constexpr double kPanelWidth = 300, kPanelHeight = 210, kLeft = 52, kTop = 30, kBottom = 34, kRight = 12, kHeader = 54;
constexpr double kLegendWidth = 110;
constexpr double kValueLeast = 1e-3;  // what is less is drawn there

std::string short_us(double us) {
  if (us >= 1e6) return fmt::format("{:g} s", us / 1e6);
  return us >= 1e3 ? fmt::format("{:g} ms", us / 1e3) : fmt::format("{:g} us", us);
}

std::string as_ratio(double value) { return fmt::format("{:g} x", value); }

double power_of(const ChartPoint& point) { return std::log2(static_cast<double>(point.bytes)); }

Axes axes_of(const Panel& panel, SvgPoint corner) {
  Axes axes{corner, kPanelWidth - kLeft - kRight, kPanelHeight - kTop - kBottom, true};
  axes.x_low = power_of(panel.points.front());
  axes.x_high = power_of(panel.points.back());
  for (const ChartPoint& point : panel.points) {
    for (const double value : point.values) {
      if (value > 0) axes.include(power_of(point), std::clamp(value, kValueLeast, 1e15));
    }
  }
  if (axes.y_high == 0) axes.include(axes.x_low, kValueLeast);  // no value at all
  axes.round();
  return axes;
}

std::string stroke_of(const Series& series, const char* width) {
  return fmt::format("stroke={} stroke-width={}", series.color, width);
}

void draw_panel(Svg& svg, const Panel& panel, Scale scale, const std::vector<Series>& series, SvgPoint corner) {
  const Axes axes = axes_of(panel, {corner.x + kLeft, corner.y + kTop});
  axes.draw_steps(svg, scale == Scale::ratio ? as_ratio : short_us);
  for (const ChartPoint& point : panel.points) {
    const SvgPoint bottom = axes.at(power_of(point), axes.y_low);
    svg.text(bottom.x, bottom.y + 14, bytes_text(point.bytes), "text-anchor=middle");
  }
  svg.text(axes.corner.x + axes.width / 2, axes.corner.y - 8, panel.title, "text-anchor=middle");
  for (size_t i = 0; i < series.size(); ++i) {
    std::vector<SvgPoint> points;
    for (const ChartPoint& point : panel.points) {
      if (!(point.values[i] > 0)) continue;
      points.push_back(axes.at(power_of(point), std::max(point.values[i], axes.y_low)));
      svg.circle(points.back(), 2.5, "fill=" + series[i].color);
    }
    svg.polyline(points, stroke_of(series[i], "1.5"));
  }
}

void draw_legend(Svg& svg, const std::vector<Series>& series) {
  double x = kLeft;
  for (const Series& one : series) {
    svg.line({x - 6, 34}, {x + 6, 34}, stroke_of(one, "3"));
    svg.text(x + 10, 38, one.name);
    x += kLegendWidth;
  }
}

}  // namespace

std::string draw_chart(const std::string& title, Scale scale, const std::vector<Series>& series,
                       const std::vector<Panel>& panels) {
  std::vector<std::string> rows;
  std::vector<int> columns;
  for (const Panel& panel : panels) {
    if (std::find(rows.begin(), rows.end(), panel.row) == rows.end()) rows.push_back(panel.row);
    if (std::find(columns.begin(), columns.end(), panel.column) == columns.end()) columns.push_back(panel.column);
  }
  std::sort(columns.begin(), columns.end());
  const double width = std::max({kPanelWidth * static_cast<double>(columns.size()), 2 * kPanelWidth,
                                 kLeft + kLegendWidth * static_cast<double>(series.size())});
  const double height = kHeader + kPanelHeight * static_cast<double>(rows.size());
  Svg svg(width, height, 10);
  svg.text(kLeft, 18, title);
  draw_legend(svg, series);
  for (const Panel& panel : panels) {
    const auto row = std::find(rows.begin(), rows.end(), panel.row);
    const auto column = std::find(columns.begin(), columns.end(), panel.column);
    draw_panel(svg, panel, scale, series,
               {kPanelWidth * static_cast<double>(column - columns.begin()),
                kHeader + kPanelHeight * static_cast<double>(row - rows.begin())});
  }
  return svg.str();
}

}  // namespace torii::perf
