// SPDX-License-Identifier: Apache-2.0
// Linear programs in a simulation.
#include "runtime/execution/linear_schedule.hpp"
#include "runtime/execution/linear_steps.hpp"

namespace torii {

template class LinearSchedule<ModelledHost>;

}  // namespace torii
