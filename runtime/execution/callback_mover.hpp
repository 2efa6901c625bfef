// SPDX-License-Identifier: Apache-2.0
// Moves the data of a broadcast whose vector only functions of the caller access.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/execution/step_places.hpp"

namespace torii {

/// The functions reach hot memory, or the slots directly, whichever is faster now (StoreChoices::functions).
class CallbackMover {
 public:
  CallbackMover(RunningCall& call, StepPlaces& places) : call_(call), places_(places) {}

  /// Moves the data of a step whose places have been found.
  void run(const Step& step) noexcept;

 private:
  std::int64_t move_portions(const Step& step, bool is_timed) noexcept;
  bool move_portion(std::size_t offset_bytes, std::size_t bytes) noexcept;
  const void* load(std::size_t offset_bytes, std::size_t bytes) noexcept;
  void store(const void* value, std::size_t offset_bytes, std::size_t bytes) noexcept;
  void* first_slot() const noexcept;

  RunningCall& call_;
  StepPlaces& places_;
  bool reaches_slots_ = false;
  bool is_timed_ = false;
  std::int64_t functions_ns_ = 0;  ///< of the step, if it is timed
};

}  // namespace torii
