// SPDX-License-Identifier: Apache-2.0
// Draws time over size in small panels: rows of collectives, columns of rank counts.
#include "perf/compare_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "perf/common/names.hpp"

namespace torii::perf {
namespace {

constexpr double kPanelWidth = 300, kPanelHeight = 210, kLeft = 52, kTop = 30, kBottom = 34, kRight = 12, kHeader = 54;

struct Line {
  const char* name;
  const char* color;
  double BestRow::*value;
};
constexpr std::array kLines = {
    Line{"best MPI", "#c0392b", &BestRow::mpi_us},
    Line{"torii, malloc", "#2471a3", &BestRow::torii_malloc_us},
    Line{"torii, allocated", "#1e8449", &BestRow::torii_allocated_us},
};

/// One panel's rows, by size.
struct Panel {
  std::string collective;
  int ranks = 0;
  std::vector<BestRow> rows;
};

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
  for (const BestRow& row : panel.rows) {
    svg += text(axes.x(static_cast<double>(row.bytes)), bottom + 14, short_size(row.bytes));
  }
  svg += text(left + (kPanelWidth - kLeft - kRight) / 2, axes.y0 - 8,
              fmt::format("{}, {} ranks, {}", panel.collective, panel.ranks, panel.rows.front().timing));
  return svg;
}

std::string draw_panel(const Panel& panel, double x, double y) {
  double low = 1e30, high = 0;
  for (const BestRow& row : panel.rows) {
    for (const Line& line : kLines) {
      low = std::min(low, row.*line.value);
      high = std::max(high, row.*line.value);
    }
  }
  // Whole decades, and at least one, whatever the times are.
  const double time_low = std::pow(10, std::floor(std::log10(std::max(low, 1e-3))));
  const double time_high = std::max(std::pow(10, std::ceil(std::log10(std::max(high, 1e-3)))), time_low * 10);
  const Axes axes{
      x + kLeft, y + kTop, static_cast<double>(panel.rows.front().bytes), static_cast<double>(panel.rows.back().bytes),
      time_low,  time_high};
  std::string svg = draw_grid(axes, panel);
  for (const Line& line : kLines) {
    std::string points;
    for (const BestRow& row : panel.rows) {
      const double px = axes.x(static_cast<double>(row.bytes)), py = axes.y(std::max(row.*line.value, time_low));
      points += fmt::format("{:.1f},{:.1f} ", px, py);
      svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"{}\"/>\n", px, py, line.color);
    }
    svg +=
        fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>\n", points, line.color);
  }
  return svg;
}

std::vector<Panel> make_panels(const std::vector<BestRow>& rows) {
  const bool any_isolated =
      std::any_of(rows.begin(), rows.end(), [](const BestRow& row) { return row.timing == "isolated"; });
  std::vector<Panel> panels;
  for (const BestRow& row : rows) {
    // A barrier has no size and stands in the table only.
    if (row.bytes == 0 || (any_isolated && row.timing != "isolated")) continue;
    auto panel = std::find_if(panels.begin(), panels.end(),
                              [&](const Panel& p) { return p.collective == row.collective && p.ranks == row.ranks; });
    if (panel == panels.end()) panel = panels.insert(panels.end(), Panel{row.collective, row.ranks, {}});
    panel->rows.push_back(row);
  }
  for (Panel& panel : panels) {
    std::sort(panel.rows.begin(), panel.rows.end(),
              [](const BestRow& a, const BestRow& b) { return a.bytes < b.bytes; });
  }
  return panels;
}

/// Quotes what SVG reads as markup.
std::string escaped(const std::string& plain) {
  std::string out;
  for (const char c : plain) out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return out;
}

}  // namespace

std::string draw_chart(const std::string& title, const std::vector<BestRow>& rows) {
  const std::vector<Panel> panels = make_panels(rows);
  std::vector<std::string> lines_of_panels;
  std::vector<int> columns;
  for (const Panel& panel : panels) {
    if (std::find(lines_of_panels.begin(), lines_of_panels.end(), panel.collective) == lines_of_panels.end()) {
      lines_of_panels.push_back(panel.collective);
    }
    if (std::find(columns.begin(), columns.end(), panel.ranks) == columns.end()) columns.push_back(panel.ranks);
  }
  std::sort(columns.begin(), columns.end());
  const double width = std::max(kPanelWidth * static_cast<double>(columns.size()), 2 * kPanelWidth);
  const double height = kHeader + kPanelHeight * static_cast<double>(lines_of_panels.size());
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0f}\" height=\"{:.0f}\" font-family=\"sans-serif\" "
      "font-size=\"10\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width, height);
  svg += text(kLeft, 18, escaped(title), "start");
  double x = kLeft;
  for (const Line& line : kLines) {
    svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"34\" r=\"4\" fill=\"{}\"/>\n", x, line.color);
    svg += text(x + 8, 38, line.name, "start");
    x += 110;
  }
  for (const Panel& panel : panels) {
    const auto row = std::find(lines_of_panels.begin(), lines_of_panels.end(), panel.collective);
    const auto column = std::find(columns.begin(), columns.end(), panel.ranks);
    svg += draw_panel(panel, kPanelWidth * static_cast<double>(column - columns.begin()),
                      kHeader + kPanelHeight * static_cast<double>(row - lines_of_panels.begin()));
  }
  return svg + "</svg>\n";
}

}  // namespace torii::perf
