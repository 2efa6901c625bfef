// SPDX-License-Identifier: Apache-2.0
// Runs linear programs: plans of one lane and one segment, in which the next step is always the next one of the list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/execution/host.hpp"
#include "runtime/execution/linear_program.hpp"
#include "runtime/execution/running_call.hpp"

namespace torii {

namespace linear {

/// The rings of a plan.
enum class Rings : std::uint8_t {
  here,   ///< within the node
  mixed,  ///< some of them to other nodes
};

}  // namespace linear

struct LinearState {
  const LinearStep* next = nullptr;
  const LinearStep* end = nullptr;
  std::size_t sources_seen = 0;      ///< the first sources of the next step, known to have arrived
  std::vector<const void*> sources;  ///< addresses of the step that runs
  std::vector<void*> targets;
};

/// The call is a parameter and not a member: the address of a member would be loaded anew after every store.
template <class Host>
class LinearSchedule {
 public:
  explicit LinearSchedule(Host host) : host_(host) {}
  void begin(const LinearProgram& program) noexcept {
    program_ = &program;
    state_.next = program.steps.data();
    state_.end = program.steps_end;
    state_.sources_seen = 0;
    if (places_ < program.places) [[unlikely]]
      reserve(program.places);
  }
  /// The call runs by another schedule.
  void leave() noexcept { program_ = nullptr; }
  bool runs() const noexcept { return program_ != nullptr; }
  Progress advance(RunningCall& call) noexcept;
  Stall stall() const noexcept;
  bool awaits(int peer) const noexcept;
  /// Whether the next step waits for nothing but a credit, once advance() has found that it cannot run.
  bool waits_for_credit() const noexcept {
    return state_.next != state_.end && state_.sources_seen == state_.next->sources.size();
  }
  bool has_run_all() const noexcept { return state_.next == state_.end; }

 private:
  void reserve(std::uint32_t places) {
    state_.sources.resize(places);
    state_.targets.resize(places);
    places_ = places;
  }
  template <linear::Rings kRings>
  Progress advance_on(RunningCall& call) noexcept;

  [[no_unique_address]] Host host_;
  const LinearProgram* program_ = nullptr;  ///< nullptr: the call runs by another schedule
  LinearState state_;
  std::uint32_t places_ = 0;  ///< for so many addresses
};

extern template class LinearSchedule<RealHost>;
extern template class LinearSchedule<ModelledHost>;

}  // namespace torii
