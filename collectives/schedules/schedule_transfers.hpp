// SPDX-License-Identifier: Apache-2.0
// From the moves of a search to the transfers of a schedule.
#pragma once

#include <vector>

#include "collectives/schedules/schedule.hpp"
#include "collectives/schedules/schedule_state.hpp"

namespace torii::scheduling {

/// In the order of their starts, each with what leaves it room.
std::vector<Transfer> transfers_of(const Model& model, std::vector<Move> moves);

}  // namespace torii::scheduling
