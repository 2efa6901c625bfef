// SPDX-License-Identifier: Apache-2.0
// The call class: what all calls share for which one choice of algorithm and tuning holds, and one plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "api/calls/call_plan.hpp"
#include "api/context/known_classes.hpp"

namespace torii {

/// A class that this team knows.
struct CallClass : KnownClass {
  /// Those that requests in flight do not use may be filled in for another call of the class.
  std::vector<std::unique_ptr<CallPlan>> call_plans;
  std::size_t next_filled = 0;  ///< where the search for the next one begins
  std::uint64_t fillings = 0;   ///< so far
};

}  // namespace torii
