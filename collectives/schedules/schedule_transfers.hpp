// SPDX-License-Identifier: Apache-2.0
// Converts the moves of a search into the transfers of a schedule.
#pragma once

#include <vector>

#include "collectives/schedules/schedule.hpp"
#include "collectives/schedules/schedule_state.hpp"

namespace torii::scheduling {

/// The transfers in the order of their starts, each with its predecessors on shared links (Transfer::after).
std::vector<Transfer> transfers_of(const Model& model, std::vector<Move> moves);

}  // namespace torii::scheduling
