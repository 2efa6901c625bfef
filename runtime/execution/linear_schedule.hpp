// SPDX-License-Identifier: Apache-2.0
// Runs straight lists: plans of one lane and one segment, in which the next step is always the next one of the list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/execution/running_call.hpp"
#include "runtime/execution/straight.hpp"

namespace torii {

/// The call is a parameter and not a member: the address of a member would be loaded anew after every store.
class LinearSchedule {
 public:
  void begin(const InstalledPlan& plan, const Straight& straight) noexcept {
    straight_ = &straight;
    next_ = straight.steps.data();
    end_ = next_ + straight.steps.size();
    sources_seen_ = 0;
    // Each step has at most all streams, the own operand and the result.
    if (sources_.size() <= plan.in.size()) sources_.resize(plan.in.size() + 1);
    if (targets_.size() <= plan.out.size()) targets_.resize(plan.out.size() + 1);
  }
  /// The call runs by another schedule.
  void leave() noexcept { straight_ = nullptr; }
  bool runs() const noexcept { return straight_ != nullptr; }
  Progress advance(RunningCall& call) noexcept;
  Stall stall() const noexcept;

 private:
  inline bool is_ready(const RunningCall& call, const StraightStep& step) noexcept;
  inline void move(const RunningCall& call, const StraightStep& step) noexcept;
  inline void store(const RunningCall& call, const StraightStep& step, std::uint32_t count, bool streaming) noexcept;
  inline void signal(RunningCall& call, const StraightStep& step) noexcept;

  const Straight* straight_ = nullptr;  ///< nullptr: the call runs by another schedule
  const StraightStep* next_ = nullptr;
  const StraightStep* end_ = nullptr;
  std::size_t sources_seen_ = 0;
  std::vector<const void*> sources_;  ///< addresses of the step that runs
  std::vector<void*> targets_;
};

}  // namespace torii
