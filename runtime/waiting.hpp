// SPDX-License-Identifier: Apache-2.0
// How a rank waits: it spins, then gives the CPU away, then sleeps, by how many CPUs there are for how many ranks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/settings.hpp"
#include "runtime/transport.hpp"

namespace torii {

/// Nanoseconds of a clock that all processes of the machine share.
std::int64_t now_ns() noexcept;

/// One wait. Made when a rank first finds nothing to do; cheap to make.
class Waiting {
 public:
  Waiting(Transport& transport, WaitMode mode) noexcept;

  /// Waits a little. `still_idle(data)` tells whether there is still nothing to do; it is asked before a sleep.
  /// Returns true about once a millisecond: the time for slow checks (deadline, peers' death, mismatch).
  bool pause(bool (*still_idle)(void* data), void* data) noexcept;
  /// For callers that poll at their own pace: never waits, and returns true when it is time for slow checks.
  bool poll() noexcept;
  /// Whether other work of the caller should get a turn now: seldom while it polls, before every sleep.
  bool is_turn_of_others() const noexcept { return polls_ % 64 == 63 || polls_ - spins_ >= yields_; }
  /// Something moved: the next pause spins again. But where ranks share CPUs, who has slept for what a network brought
  /// will sleep for the next, too, and leaves the CPU to others that much sooner.
  void moved() noexcept {
    polls_ = has_slept_ && is_crowded_ ? spins_ + yields_ - std::min(yields_, kYieldsAfterSleep) : 0;
    has_slept_ = false;
    quiet_since_ns_ = 0;
  }
  /// Since when nothing has moved, as far as the slow checks have seen; 0 before the first.
  std::int64_t quiet_since_ns() const noexcept { return quiet_since_ns_; }

 private:
  static constexpr std::uint32_t kYieldsAfterSleep = 2;

  bool is_time_for_checks() noexcept;
  int sleep_us() const noexcept;

  Transport& transport_;
  std::uint32_t polls_ = 0;
  std::uint32_t spins_;
  std::uint32_t yields_;
  bool sleeps_long_;
  bool is_crowded_;         ///< Transport::crowded()
  bool has_slept_ = false;  ///< since something moved
  std::int64_t quiet_since_ns_ = 0;
  std::int64_t checked_ns_ = 0;
};

}  // namespace torii
