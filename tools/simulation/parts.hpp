// SPDX-License-Identifier: Apache-2.0
// The parts of a simulated network that threads move on at once.
#pragma once

#include "tools/simulation/run.hpp"

namespace torii::simulated {

/// The number of parts for a call: Call::parts, or as many as pay; 1 if the ranks of two parts could concern each other
/// at once.
int parts_of(const Call& call);

}  // namespace torii::simulated
