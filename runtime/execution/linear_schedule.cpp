// SPDX-License-Identifier: Apache-2.0
// Linear programs on this machine. Alone in its file: the compiler then knows that there is one caller of each part.
#include "runtime/execution/linear_schedule.hpp"

#include "runtime/execution/linear_steps.hpp"

namespace torii {

template class LinearSchedule<RealHost>;

}  // namespace torii
