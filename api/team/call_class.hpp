// SPDX-License-Identifier: Apache-2.0
// The call class: what all calls share for which one choice of algorithm and tuning holds, and one plan.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "api/team/call_plan.hpp"

namespace torii {

/// The properties by which classes differ besides the lengths for which a choice holds. Kernels are found call by call,
/// so type and operation count only as far as they change the plan.
struct ClassKey {
  Collective collective = Collective::barrier;
  int root = 0;
  Determinism determinism = Determinism::run;
  Widening widening = Widening::none;
  bool unequal = false;      ///< blocks have lengths of their own
  bool has_counts = false;   ///< lengths that all ranks know
  bool is_internal = false;  ///< for which nothing is forced
  const LeafIntervals* leaves = nullptr;
  /// CallShape::unit_bytes where it is more than 64. Segments are multiples of 64 bytes, so shorter units change none.
  std::size_t long_unit_bytes = 0;

  bool operator==(const ClassKey&) const = default;
};

struct CallClass {
  ClassKey key;
  std::shared_ptr<const ClassPlan> selected;
  /// Those that requests in flight do not use may be filled in for another call of the class.
  std::vector<std::unique_ptr<CallPlan>> call_plans;
  std::size_t next_filled = 0;  ///< where the search for the next one begins

  /// `bytes`: of the vector, as the layout counts them; of no meaning where blocks have lengths of their own.
  bool serves(const ClassKey& other, std::size_t bytes) const noexcept {
    return key == other && (key.unequal || selected->holds.contains(bytes));
  }
};

}  // namespace torii
