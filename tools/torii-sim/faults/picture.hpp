// SPDX-License-Identifier: Apache-2.0
// A history as a picture: a lane for each rank, calls as bars, puts as arrows, and what went wrong.
#pragma once

#include <string>

#include "tools/torii-sim/faults/event_log.hpp"
#include "tools/torii-sim/faults/history.hpp"

namespace torii::faults {

/// As SVG. The wider a stretch of time is, the more it is compressed: a deadline is a thousand times as long as a call.
std::string draw(const History& history, const EventLog& log);

}  // namespace torii::faults
