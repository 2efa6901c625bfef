// SPDX-License-Identifier: Apache-2.0
// Linear and logarithmic axes.
#include "collectives/drawing/axes.hpp"

#include <algorithm>
#include <cmath>

namespace torii {

void Axes::include(double x, double y) {
  x_low = std::min(x_low, x);
  x_high = std::max(x_high, x);
  y_low = std::min(y_low, y);
  y_high = std::max(y_high, y);
}

void Axes::round() {
  if (y_is_log) {
    y_low = std::pow(10, std::floor(std::log10(y_low)));
    y_high = std::max(std::pow(10, std::ceil(std::log10(y_high))), 10 * y_low);
  } else {
    y_low = 0;
    y_step = even_step(y_high);
    y_high = y_step * std::ceil(y_high / y_step);
  }
}

SvgPoint Axes::at(double x, double y) const {
  const double right = x_high > x_low ? (x - x_low) / (x_high - x_low) : 0.5;
  const double up = y_is_log ? std::log10(y / y_low) / std::log10(y_high / y_low) : y / y_high;
  return {corner.x + width * right, corner.y + height * (1 - up)};
}

void Axes::draw_steps(Svg& svg, const std::function<std::string(double)>& label) const {
  const long steps = std::lround(y_is_log ? std::log10(y_high / y_low) : y_high / y_step);
  for (long step = 0; step <= steps; ++step) {
    const double value = y_is_log ? y_low * std::pow(10, step) : static_cast<double>(step) * y_step;
    const double y = at(x_low, value).y;
    svg.line({corner.x, y}, {corner.x + width, y}, "stroke=#ddd");
    svg.text(corner.x - 5, y + 4, label(value), "text-anchor=end");
  }
}

double even_step(double high) {
  const double power = std::pow(10, std::floor(std::log10(high / 5)));
  const double rest = high / 5 / power;
  return power * (rest < 2 ? 1 : rest < 5 ? 2 : 5);
}

}  // namespace torii
