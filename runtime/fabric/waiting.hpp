// SPDX-License-Identifier: Apache-2.0
// How a rank waits: it spins, then gives the CPU away, then sleeps, by how many CPUs there are for how many ranks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/deadline.hpp"
#include "runtime/base/settings.hpp"
#include "runtime/base/tuned_constants.hpp"
#include "runtime/fabric/sleep_mark.hpp"
#include "runtime/fabric/transport.hpp"

namespace torii {

/// One pause of a thread that spins.
void relax() noexcept;

/// One wait. Made when a rank first finds nothing to do; cheap to make.
class Waiting {
 public:
  /// It is over after `timeout_ns` in which nothing has moved.
  Waiting(Transport& transport, WaitMode mode, std::int64_t timeout_ns) noexcept;

  /// The caller has other work to look at while it waits. From now on sleeps are short.
  void serve_others() noexcept;
  /// Waits a little. `still_idle(data)` tells whether there is still nothing to do; it is asked before a sleep.
  /// Returns true about once a millisecond: the time for slow checks (deadline, peers' death, mismatch). Not at once
  /// after a time in which this process did not run: what its peers did meanwhile has to be looked at first.
  bool pause(bool (*still_idle)(void* data), void* data) noexcept;
  /// For callers that poll at their own pace: never waits, and returns true when it is time for slow checks.
  bool poll() noexcept;
  /// The same after `away_ns` that the caller meant to wait elsewhere, which count as waiting.
  bool poll_after(std::int64_t away_ns) noexcept;
  /// Whether other work of the caller should get a turn now: seldom while it polls, before every sleep. Yields take as
  /// long as others like, so where they are served they get a turn among few of them.
  bool is_turn_of_others() const noexcept {
    return polls_ % kPollsPerTurn == kPollsPerTurn - 1 || polls_ >= awake_ ||
           (serves_others() && polls_ >= spins_ && polls_ % kYieldsPerTurn == 0);
  }
  /// Something moved: the next pause spins again. But a rank that shares its CPU and had to sleep for a network message
  /// will likely sleep for the next one too. So it skips most polling.
  void moved() noexcept {
    polls_ = has_slept_ && transport_.polling_is_costly() ? awake_ - std::min(awake_ - spins_, kYieldsAfterSleep) : 0;
    has_slept_ = false;
    has_looked_ = false;
    mark_.clear();
  }
  /// For how long nothing has moved, as far as the slow checks have seen, and as Deadline counts.
  std::int64_t quiet_ns() const noexcept { return has_looked_ ? quiet_.waited_ns() : 0; }
  bool is_over() const noexcept { return has_looked_ && quiet_.has_passed(); }
  /// When this process was last found to run again after a time in which it did not (now_ns()); 0: never in this wait.
  std::int64_t resumed_ns() const noexcept { return has_looked_ ? resumed_ns_ : 0; }
  /// The part of quiet_ns() since then: for so long peers have had the time to answer.
  std::int64_t attentive_ns() const noexcept { return has_looked_ ? quiet_.waited_ns() - absent_ns_ : 0; }

  /// Polls are counted up to here; the count then continues one cycle before, so that it never overflows and periodic
  /// actions continue for ever.
  static constexpr std::uint32_t kPollsMost = 32768;

 private:
  static constexpr auto kYieldsAfterSleep = tuned<std::uint32_t>("waiting.yields_after_sleep");
  static constexpr auto kPollsPerTurn = tuned<std::uint32_t>("waiting.polls_per_turn");
  static constexpr auto kYieldsPerTurn = tuned<std::uint32_t>("waiting.yields_per_turn");
  static constexpr auto kSleepServingUs = tuned<int>("waiting.sleep_serving");
  static constexpr std::uint32_t kPollsPerCycle = 1024;

  void count() noexcept {
    if (++polls_ == kPollsMost) polls_ -= kPollsPerCycle;
  }
  bool look(std::int64_t away_ns) noexcept;
  void note_wait(bool may_hop) noexcept;
  bool is_time_for_checks(std::int64_t away_ns) noexcept;
  int sleep_us() const noexcept;
  bool serves_others() const noexcept { return sleep_us_most_ == kSleepServingUs; }

  Transport& transport_;
  int sleep_us_most_;
  std::uint32_t polls_ = 0;
  std::uint32_t spins_;      ///< polls up to this one spin, later ones yield
  std::uint32_t awake_;      ///< polls up to this one do not sleep
  bool has_slept_ = false;   ///< since something moved
  bool has_looked_ = false;  ///< at the clock, since something moved
  bool polls_rarely_ = false;
  Deadline quiet_;
  std::int64_t checked_ns_ = 0;
  std::int64_t noted_ns_ = 0;  ///< of waiting: not before that the transport is told again
  std::int64_t resumed_ns_ = 0;
  std::int64_t absent_ns_ = 0;  ///< of quiet_: counted up to resumed_ns_
  SleepMark mark_;              ///< set from the first sleep on until something moves
};

}  // namespace torii
