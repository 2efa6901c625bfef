// SPDX-License-Identifier: Apache-2.0
// The executor's interface to a simulation.
#pragma once

#include <cstddef>

#include "runtime/plan/plan.hpp"

namespace torii {

/// A simulation's model of the work of steps. Only transports/simulated has one; elsewhere steps run in real time.
class StepModel {
 public:
  virtual ~StepModel() = default;
  /// A step with so many sources, of one message's bytes each, runs now. False: its data is not touched, only signals
  /// are sent.
  virtual bool runs(std::size_t sources, std::size_t bytes) noexcept = 0;
  /// True while the rank is still at the step: nothing else runs meanwhile.
  virtual bool is_busy() const noexcept = 0;
  /// An equal lane that outlives the call. All ranks with such a lane share it, so it is in a cache when the next of
  /// them looks at it.
  virtual const Lane& common(const Lane& lane) = 0;
};

}  // namespace torii
