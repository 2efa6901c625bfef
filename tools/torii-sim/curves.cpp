// SPDX-License-Identifier: Apache-2.0
// Draws curves and bars with axes, a grid and a legend beside them.
#include "tools/torii-sim/curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>

#include "collectives/drawing/draw.hpp"

namespace torii::tools {
namespace {

constexpr double kLeft = 70;
constexpr double kTop = 50;
constexpr double kWidth = 480;
constexpr double kHeight = 320;
constexpr std::array<std::string_view, 6> kColors = {"#1b6ca8", "#c0392b", "#2e8b57", "#d68910", "#7d3c98", "#5d6d7e"};

/// The places of values on the paper. On a logarithmic axis steps are powers of ten.
struct Axes {
  int x_low = 0;
  int x_high = 0;
  double y_low = 0;
  double y_high = 0;
  double y_step = 1;
  bool y_is_log = false;

  double x(int value) const { return kLeft + kWidth * (value - x_low) / std::max(1, x_high - x_low); }
  double y(double value) const {
    const double share = y_is_log ? std::log10(value / y_low) / std::log10(y_high / y_low) : value / y_high;
    return kTop + kHeight * (1 - share);
  }
  int steps() const { return static_cast<int>(std::lround(y_is_log ? std::log10(y_high / y_low) : y_high / y_step)); }
  double step(int number) const { return y_is_log ? y_low * std::pow(10, number) : number * y_step; }
};

/// A step of 1, 2 or 5 times a power of ten that gives five to ten steps.
double even_step(double high) {
  const double power = std::pow(10, std::floor(std::log10(high / 5)));
  const double rest = high / 5 / power;
  return power * (rest < 2 ? 1 : rest < 5 ? 2 : 5);
}

Axes axes_of(const CurveChart& chart) {
  Axes axes{1 << 30, 0, chart.level > 0 ? chart.level : 1e300, chart.level, 1, chart.y_is_log};
  for (const Curve& curve : chart.curves) {
    for (const auto& [x, y] : curve.points) {
      axes.x_low = std::min(axes.x_low, x);
      axes.x_high = std::max(axes.x_high, x);
      axes.y_low = std::min(axes.y_low, y);
      axes.y_high = std::max(axes.y_high, y);
    }
  }
  if (chart.y_is_log) {
    axes.y_low = std::pow(10, std::floor(std::log10(axes.y_low)));
    axes.y_high = std::max(std::pow(10, std::ceil(std::log10(axes.y_high))), 10 * axes.y_low);
  } else {
    axes.y_step = even_step(axes.y_high);
    axes.y_high = axes.y_step * std::ceil(axes.y_high / axes.y_step);
  }
  return axes;
}

/// The label of a power of 2 of bytes.
std::string size_text(int power) {
  constexpr std::array<std::string_view, 5> kUnits = {"", "K", "M", "G", "T"};
  const auto unit = static_cast<std::size_t>(std::clamp(power / 10, 0, 4));
  return fmt::format("{}{}", 1LL << (power - 10 * static_cast<int>(unit)), kUnits[unit]);
}

std::string text(double x, double y, std::string_view anchor, std::string_view words) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, svg_text(words));
}

std::string draw_axes(const CurveChart& chart, const Axes& axes) {
  std::string svg;
  for (int step = 0; step <= axes.steps(); ++step) {
    const double y = axes.y(axes.step(step));
    svg += fmt::format("<path d=\"M{} {:.1f}h{}\" stroke=\"#ddd\"/>\n", kLeft, y, kWidth);
    svg += text(kLeft - 6, y + 4, "end", fmt::format("{:.6g}", axes.step(step)));
  }
  const int stride = std::max(1, (axes.x_high - axes.x_low + 15) / 16);
  for (int x = axes.x_low; x <= axes.x_high; x += stride) {
    svg += text(axes.x(x), kTop + kHeight + 18, "middle", chart.x_is_size ? size_text(x) : std::to_string(x));
  }
  svg += fmt::format("<path d=\"M{} {}v{}h{}\" fill=\"none\" stroke=\"#333\"/>\n", kLeft, kTop, kHeight, kWidth);
  svg += text(kLeft + kWidth / 2, kTop + kHeight + 38, "middle", chart.x_name);
  svg += text(kLeft, kTop - 10, "start", chart.y_name);
  if (chart.level > 0) {
    const double y = axes.y(chart.level);
    svg += fmt::format("<path d=\"M{} {:.1f}h{}\" stroke=\"#333\" stroke-dasharray=\"2 3\"/>\n", kLeft, y, kWidth);
    svg += text(kLeft + kWidth + 6, y + 4, "start", chart.level_name);
  }
  return svg;
}

std::string head(double height, std::string_view title) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"780\" height=\"{0:.0f}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"780\" height=\"{0:.0f}\" fill=\"white\"/>\n"
      "<text x=\"{1}\" y=\"22\" font-size=\"15\">{2}</text>\n",
      height, kLeft, svg_text(title));
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
  std::string svg = head(bottom + 90, chart.title);
  for (int i = 0; i <= static_cast<int>(std::lround(end / step)); ++i) {
    const double x = kNames + kLong * i * step / end;
    svg += fmt::format("<path d=\"M{:.1f} {}V{:.1f}\" stroke=\"#ddd\"/>\n", x, kTop, bottom);
    svg += text(x, bottom + 16, "middle", fmt::format("{:.6g}", i * step));
  }
  svg += text(kNames + kLong / 2, bottom + 36, "middle", chart.x_name);
  double y = kTop;
  for (const BarChart::Bar& bar : chart.bars) {
    svg += text(kNames - 8, y + 20, "end", bar.name);
    double x = kNames;
    for (std::size_t part = 0; part < bar.parts.size(); ++part) {
      const double width = kLong * bar.parts[part] / end;
      svg += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"><title>{}: {:.6g}"
          "</title></rect>\n",
          x, y + 4, width, kRow - 8, kColors[part], svg_text(chart.part_names[part]), bar.parts[part]);
      x += width;
    }
    y += kRow;
  }
  double x = kLeft;
  for (std::size_t part = 0; part < chart.part_names.size(); ++part) {
    svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"12\" fill=\"{}\"/>\n", x, bottom + 56,
                       kColors[part]);
    svg += text(x + 18, bottom + 66, "start", chart.part_names[part]);
    x += 32 + 7.0 * static_cast<double>(chart.part_names[part].size());
  }
  return svg + "</svg>\n";
}

std::string draw_curves(const CurveChart& chart) {
  const Axes axes = axes_of(chart);
  std::string svg = head(430, chart.title);
  svg += draw_axes(chart, axes);
  std::size_t color = 0;
  double legend = kTop + 8;
  for (std::size_t i = 0; i < chart.curves.size(); ++i) {
    const Curve& curve = chart.curves[i];
    if (i > 0 && !curve.dashed) ++color;
    const std::string_view stroke = kColors[color % kColors.size()];
    const std::string_view dashes = curve.dashed ? " stroke-dasharray=\"6 4\"" : "";
    std::string points;
    for (const auto& [x, y] : curve.points) points += fmt::format("{:.1f},{:.1f} ", axes.x(x), axes.y(y));
    svg += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>\n", points, stroke,
                       dashes);
    svg += fmt::format("<path d=\"M{} {}h24\" stroke=\"{}\" stroke-width=\"2\"{}/>\n", kLeft + kWidth + 16, legend,
                       stroke, dashes);
    svg += text(kLeft + kWidth + 46, legend + 4, "start", curve.name);
    legend += 20;
  }
  return svg + "</svg>\n";
}

}  // namespace torii::tools
