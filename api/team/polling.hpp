// SPDX-License-Identifier: Apache-2.0
// The wait of callers that come back again and again: to test, or to wait for a moment each time.
#pragma once

#include <cstdint>

#include "runtime/execution/waiting.hpp"

namespace torii {

struct Polling {
  Waiting waiting;
  std::uint64_t moves = 0;  ///< InFlight::moves() when it was last looked at

  /// Whoever moved something since then: nothing stands still.
  void note_moves(std::uint64_t now) noexcept {
    if (moves == now) return;
    moves = now;
    waiting.moved();
  }
};

}  // namespace torii
