// SPDX-License-Identifier: Apache-2.0
// Draws broadcast schedules: on their tree, and as a Gantt chart.
#pragma once

#include <string>

#include "collectives/schedules/schedule.hpp"

namespace torii {

/// One line per transfer in the order of their starts: "0.000 ms to 86.957 ms: 0 > 6", with those that it follows.
std::string draw_schedule_text(const Schedule& schedule);

/// A self-contained SVG document with two pictures. The first shows the tree with its bandwidths (lines wider where
/// more goes through) and the transfers as numbered arrows. The second has a row for each rank, with a bar while the
/// message comes in, over time. `title` is plain text. `backwards`: the schedule is that of a reduce, which runs from
/// its end to its beginning.
std::string draw_schedule_svg(const TreeTopology& tree, const Schedule& schedule, const std::string& title,
                              bool backwards);

}  // namespace torii
