// SPDX-License-Identifier: Apache-2.0
// Curves over a whole number, and stacked bars, as SVG.
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

/// Both axes are linear unless the fields say otherwise. `level`, if above 0, is a line across with `level_name`.
/// Curves take colours in turn; a dashed one has that of the curve before it.
struct CurveChart {
  std::string title;
  std::string x_name;
  std::string y_name;
  bool x_is_size = false;  ///< x is the power of 2 of a number of bytes
  bool x_is_log = false;   ///< labels are powers of 10; all x are above 0
  bool y_is_log = false;   ///< all values are above 0
  double level = 0;
  std::string level_name;
  std::vector<Curve> curves;
};

/// A whole SVG document. At least one curve must have a point.
std::string draw_curves(const CurveChart& chart);

/// Rows of parts, side by side from the left.
struct BarChart {
  struct Bar {
    std::string name;
    std::vector<double> parts;  ///< as many as there are names
  };
  std::string title;
  std::string x_name;
  std::vector<std::string> part_names;  ///< at most six
  std::vector<Bar> bars;
};

/// A whole SVG document. At least one part must be above 0.
std::string draw_bars(const BarChart& chart);

}  // namespace torii::tools
