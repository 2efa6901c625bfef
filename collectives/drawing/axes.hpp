// SPDX-License-Identifier: Apache-2.0
// The axes of a curve: the places of its values in the picture.
#pragma once

#include <functional>
#include <string>

#include "collectives/drawing/svg.hpp"

namespace torii {

/// A field of a picture with a grid of steps of y, whole powers of ten if y is logarithmic.
struct Axes {
  SvgPoint corner;  ///< the upper left one
  double width = 0;
  double height = 0;
  bool y_is_log = false;
  double x_low = 1e300;
  double x_high = -1e300;
  double y_low = 1e300;
  double y_high = 0;
  double y_step = 1;

  /// Every point that will be drawn, before round(). A logarithmic y is above 0.
  void include(double x, double y);
  /// Moves the ends of y to steps, with at least one step between.
  void round();
  SvgPoint at(double x, double y) const;
  /// A line and a label for every step.
  void draw_steps(Svg& svg, const std::function<std::string(double)>& label) const;
};

/// A step of 1, 2 or 5 times a power of ten, so that there are five to ten of them up to `high`.
double even_step(double high);

}  // namespace torii
