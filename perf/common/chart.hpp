// SPDX-License-Identifier: Apache-2.0
// Drawings of time, or of a ratio of times, over size, as SVG.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace torii::perf {

struct Series {
  std::string name;
  std::string color;  ///< as SVG has it
};

struct ChartPoint {
  size_t bytes = 0;
  std::vector<double> values;  ///< one per series, in microseconds or as ratios; 0: none
};

/// One drawing; panels stand in a grid of `row` (in order of appearance) and `column` (ascending).
struct Panel {
  std::string row;
  int column = 0;
  std::string title;
  std::vector<ChartPoint> points;  ///< by ascending size, at least one
};

/// The kind of a chart's values.
enum class Scale { microseconds, ratio };

/// Values over size in every panel, both logarithmic. `title` stands above.
std::string draw_chart(const std::string& title, Scale scale, const std::vector<Series>& series,
                       const std::vector<Panel>& panels);

}  // namespace torii::perf
