// SPDX-License-Identifier: Apache-2.0
// The wait of callers that come back again and again: to test, or to wait for a moment each time.
#pragma once

#include <cstdint>

#include "runtime/base/tuned_constants.hpp"
#include "runtime/fabric/waiting.hpp"

namespace torii {

struct Polling {
  Waiting waiting;
  std::uint64_t moves = 0;  ///< InFlight::moves() when it was last looked at

  /// If any thread has moved something since then, the wait is not quiet.
  void note_moves(std::uint64_t now) noexcept {
    if (moves == now) return;
    moves = now;
    waiting.moved();
  }

  /// Whether the slow checks are to be made for this request: when it is time for them, and ten times a second for each
  /// request. If callers ask for several requests by turns, it may always be time at the same one.
  bool is_turn_of(std::int64_t& turn_checked, bool is_time) const noexcept {
    constexpr auto kTurnNs = tuned<std::int64_t>("waiting.turn");
    const std::int64_t turn = waiting.quiet_ns() / kTurnNs;
    if (!is_time && (turn == 0 || turn == turn_checked)) return false;
    turn_checked = turn;
    return true;
  }
};

}  // namespace torii
