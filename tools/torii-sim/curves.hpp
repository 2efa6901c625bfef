// SPDX-License-Identifier: Apache-2.0
// Curves over a whole number, as SVG: one line per series, from 0 up.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace torii::tools {

struct Curve {
  std::string name;
  bool dashed = false;
  std::vector<std::pair<int, double>> points;  ///< by ascending x
};

/// Both axes linear. `level`, if above 0, is drawn as a line across with `level_name`. Curves take colours in turn, a
/// dashed one that of the curve before it.
struct CurveChart {
  std::string title;
  std::string x_name;
  std::string y_name;
  double level = 0;
  std::string level_name;
  std::vector<Curve> curves;
};

/// A whole SVG document. Needs a point in one of the curves.
std::string draw_curves(const CurveChart& chart);

}  // namespace torii::tools
