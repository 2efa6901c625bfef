// SPDX-License-Identifier: Apache-2.0
// Whether peers read this call's operand in this rank's private memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/execution/installed_plan.hpp"
#include "runtime/fabric/waiting.hpp"

namespace torii {

/// One call's choice between slots and reads of private memory (PrivateReadChoice), and its time.
struct PrivateRead {
  bool readable = false;  ///< readers take the operand from private memory

  void forget() noexcept {
    readable = false;
    turn_ = {};
  }
  /// `bytes`: of the vector, or half of what this rank sends and takes. `number`: of the call, equal on all ranks
  /// (CallTurns).
  void choose(PrivateReadChoice& choice, std::size_t bytes, std::uint32_t number) noexcept {
    bytes_ = bytes;
    if (bytes < PrivateReadChoice::kBytesMin) return;
    turn_ = choice.of(bytes).common(number);
    readable = turn_.way == 1;
    if (turn_.timed) begun_ns_ = now_ns();
  }
  void end(PrivateReadChoice* choice) const noexcept {
    if (!turn_.timed) return;
    const float time_ns = static_cast<float>(now_ns() - begun_ns_);
    choice->of(bytes_).record(turn_.way, time_ns / static_cast<float>(bytes_));
  }

 private:
  TimedChoice::Turn turn_ = {0, false};
  std::size_t bytes_ = 0;
  std::int64_t begun_ns_ = 0;
};

}  // namespace torii
