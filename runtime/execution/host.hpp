// SPDX-License-Identifier: Apache-2.0
// The host of an execution: this machine or a simulation. The schedules are compiled for each kind of host, so that a
// machine pays nothing for the questions of a simulation.
#pragma once

#include <cstddef>

#include "runtime/execution/lane_watch.hpp"
#include "runtime/execution/step_model.hpp"
#include "runtime/plan/plan.hpp"

namespace torii {

/// This machine: steps run in real time.
struct RealHost {
  using Watch = AllLanes;
  static constexpr bool kRunsAll = true;
  static constexpr bool runs(std::size_t /*sources*/, std::size_t /*bytes*/) noexcept { return true; }
  static constexpr bool is_busy() noexcept { return false; }
  static const Lane& common(const Lane& lane) noexcept { return lane; }
};

/// A simulation, which counts the work of steps. Thousands of ranks in one process spend their time on words that are
/// in no cache. So lanes are looked at only when something they wait for has changed.
class ModelledHost {
 public:
  using Watch = LaneWatch;
  static constexpr bool kRunsAll = false;
  /// Does not keep `model` alive.
  explicit ModelledHost(StepModel& model) noexcept : model_(&model) {}
  bool runs(std::size_t sources, std::size_t bytes) const noexcept { return model_->runs(sources, bytes); }
  bool is_busy() const noexcept { return model_->is_busy(); }
  const Lane& common(const Lane& lane) const { return model_->common(lane); }

 private:
  StepModel* model_;
};

}  // namespace torii
