// SPDX-License-Identifier: Apache-2.0
// Draws small panels with a line per series.
#include "perf/common/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "perf/common/names.hpp"

namespace torii::perf {
namespace {

constexpr double kPanelWidth = 300, kPanelHeight = 210, kLeft = 52, kTop = 30, kBottom = 34, kRight = 12, kHeader = 54;
constexpr double kLegendWidth = 110;

struct Axes {
  double x0, y0;  ///< upper left corner of the plot
  double size_low, size_high, time_low, time_high;
  double x(double bytes) const {
    const double width = kPanelWidth - kLeft - kRight;
    const double span = std::log2(size_high / size_low);
    return x0 + (span > 0 ? width * std::log2(bytes / size_low) / span : width / 2);
  }
  double y(double us) const {
    const double height = kPanelHeight - kTop - kBottom;
    return y0 + height * (1 - std::log10(us / time_low) / std::log10(time_high / time_low));
  }
};

std::string text(double x, double y, const std::string& what, const char* anchor = "middle") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, what);
}

std::string short_us(double us) {
  if (us >= 1e6) return fmt::format("{:g} s", us / 1e6);
  return us >= 1e3 ? fmt::format("{:g} ms", us / 1e3) : fmt::format("{:g} us", us);
}

/// Quotes what SVG reads as markup.
std::string escaped(const std::string& plain) {
  std::string out;
  for (const char c : plain) out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return out;
}

std::string draw_grid(const Axes& axes, const Panel& panel) {
  std::string svg;
  const double right = axes.x(axes.size_high), left = axes.x0;
  const double bottom = axes.y0 + kPanelHeight - kTop - kBottom;
  const long decades = std::lround(std::log10(axes.time_high / axes.time_low));
  for (long decade = 0; decade <= decades; ++decade) {
    const double us = axes.time_low * std::pow(10, static_cast<double>(decade));
    svg += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#ddd\"/>\n", left,
                       axes.y(us), std::max(right, left + kPanelWidth - kLeft - kRight), axes.y(us));
    svg += text(left - 4, axes.y(us) + 3, short_us(us), "end");
  }
  for (const ChartPoint& point : panel.points) {
    svg += text(axes.x(static_cast<double>(point.bytes)), bottom + 14, short_size(point.bytes));
  }
  svg += text(left + (kPanelWidth - kLeft - kRight) / 2, axes.y0 - 8, escaped(panel.title));
  return svg;
}

std::string draw_line(const Axes& axes, const Panel& panel, const Series& series, size_t number) {
  std::string points, svg;
  for (const ChartPoint& point : panel.points) {
    if (!(point.us[number] > 0)) continue;
    const double px = axes.x(static_cast<double>(point.bytes)), py = axes.y(std::max(point.us[number], axes.time_low));
    points += fmt::format("{:.1f},{:.1f} ", px, py);
    svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"{}\"/>\n", px, py, series.color);
  }
  svg += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"{}/>\n", points,
                     series.color, series.dashed ? " stroke-dasharray=\"5 3\"" : "");
  return svg;
}

std::string draw_panel(const Panel& panel, const std::vector<Series>& series, double x, double y) {
  double low = 1e30, high = 0;
  for (const ChartPoint& point : panel.points) {
    for (const double us : point.us) {
      if (!(us > 0)) continue;
      low = std::min(low, us);
      high = std::max(high, us);
    }
  }
  // Whole decades, and at least one, whatever the times are.
  const double time_low = std::pow(10, std::floor(std::log10(std::clamp(low, 1e-3, 1e15))));
  const double time_high = std::max(std::pow(10, std::ceil(std::log10(std::max(high, 1e-3)))), time_low * 10);
  const Axes axes{x + kLeft,
                  y + kTop,
                  static_cast<double>(panel.points.front().bytes),
                  static_cast<double>(panel.points.back().bytes),
                  time_low,
                  time_high};
  std::string svg = draw_grid(axes, panel);
  for (size_t i = 0; i < series.size(); ++i) svg += draw_line(axes, panel, series[i], i);
  return svg;
}

std::string draw_legend(const std::vector<Series>& series) {
  std::string svg;
  double x = kLeft;
  for (const Series& one : series) {
    svg += fmt::format("<line x1=\"{:.1f}\" y1=\"34\" x2=\"{:.1f}\" y2=\"34\" stroke=\"{}\" stroke-width=\"3\"{}/>\n",
                       x - 6, x + 6, one.color, one.dashed ? " stroke-dasharray=\"5 3\"" : "");
    svg += text(x + 10, 38, escaped(one.name), "start");
    x += kLegendWidth;
  }
  return svg;
}

}  // namespace

std::string draw_chart(const std::string& title, const std::vector<Series>& series, const std::vector<Panel>& panels) {
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
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0f}\" height=\"{:.0f}\" font-family=\"sans-serif\" "
      "font-size=\"10\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width, height);
  svg += text(kLeft, 18, escaped(title), "start");
  svg += draw_legend(series);
  for (const Panel& panel : panels) {
    const auto row = std::find(rows.begin(), rows.end(), panel.row);
    const auto column = std::find(columns.begin(), columns.end(), panel.column);
    svg += draw_panel(panel, series, kPanelWidth * static_cast<double>(column - columns.begin()),
                      kHeader + kPanelHeight * static_cast<double>(row - rows.begin()));
  }
  return svg + "</svg>\n";
}

}  // namespace torii::perf
