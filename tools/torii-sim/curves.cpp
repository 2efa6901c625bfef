// SPDX-License-Identifier: Apache-2.0
// Draws curves with axes, a grid and a legend beside them.
#include "tools/torii-sim/curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace torii::tools {
namespace {

constexpr double kLeft = 70;
constexpr double kTop = 50;
constexpr double kWidth = 480;
constexpr double kHeight = 320;
constexpr std::array<std::string_view, 6> kColors = {"#1b6ca8", "#c0392b", "#2e8b57", "#d68910", "#7d3c98", "#5d6d7e"};

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '&') {
      result += "&amp;";
    } else {
      result += c;
    }
  }
  return result;
}

/// Where values stand on the paper.
struct Axes {
  int x_low = 0;
  int x_high = 0;
  double y_high = 0;
  double y_step = 1;

  double x(int value) const { return kLeft + kWidth * (value - x_low) / std::max(1, x_high - x_low); }
  double y(double value) const { return kTop + kHeight * (1 - value / y_high); }
};

Axes axes_of(const CurveChart& chart) {
  Axes axes{1 << 30, 0, chart.level, 1};
  for (const Curve& curve : chart.curves) {
    for (const auto& [x, y] : curve.points) {
      axes.x_low = std::min(axes.x_low, x);
      axes.x_high = std::max(axes.x_high, x);
      axes.y_high = std::max(axes.y_high, y);
    }
  }
  // A step of 1, 2 or 5 times a power of ten, so that there are five to ten of them.
  const double power = std::pow(10, std::floor(std::log10(axes.y_high / 5)));
  const double rest = axes.y_high / 5 / power;
  axes.y_step = power * (rest < 2 ? 1 : rest < 5 ? 2 : 5);
  axes.y_high = axes.y_step * std::ceil(axes.y_high / axes.y_step);
  return axes;
}

std::string text(double x, double y, std::string_view anchor, std::string_view words) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, escaped(words));
}

std::string draw_axes(const CurveChart& chart, const Axes& axes) {
  std::string svg;
  const int steps = static_cast<int>(std::lround(axes.y_high / axes.y_step));
  for (int step = 0; step <= steps; ++step) {
    const double y = axes.y(step * axes.y_step);
    svg += fmt::format("<path d=\"M{} {:.1f}h{}\" stroke=\"#ddd\"/>\n", kLeft, y, kWidth);
    svg += text(kLeft - 6, y + 4, "end", fmt::format("{:.6g}", step * axes.y_step));
  }
  const int stride = std::max(1, (axes.x_high - axes.x_low + 15) / 16);
  for (int x = axes.x_low; x <= axes.x_high; x += stride) {
    svg += text(axes.x(x), kTop + kHeight + 18, "middle", std::to_string(x));
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

}  // namespace

std::string draw_curves(const CurveChart& chart) {
  const Axes axes = axes_of(chart);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"780\" height=\"430\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"780\" height=\"430\" fill=\"white\"/>\n");
  svg += fmt::format("<text x=\"{}\" y=\"22\" font-size=\"15\">{}</text>\n", kLeft, escaped(chart.title));
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
