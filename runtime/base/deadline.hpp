// SPDX-License-Identifier: Apache-2.0
// A limit on the time that this process waits. Time in which it did not run is not waiting.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/platform.hpp"

namespace torii {

/// Every wait that may end by its length uses a deadline. While a process is stopped (by SIGSTOP, Ctrl-Z, a batch
/// system, a debugger, a suspended machine), every clock goes on. So waiting is counted in steps, from one look at the
/// clock to the next. A step counts in full up to the time that the waiter meant to be away, and `slack` more, for a
/// CPU that was late. A longer step counts as that much, because the process did not run in the rest of that step.
/// Waiters therefore have to look often: at least once in slack_ns() while they run, by nap_ms() for instance.
class Deadline {
 public:
  static constexpr std::int64_t kSlackMostNs = 1'000'000'000;
  static constexpr std::int64_t kSlackLeastNs = 1'000'000;

  /// Over after so much waiting from `now` on.
  explicit Deadline(std::int64_t limit_ns, std::int64_t now = now_ns()) noexcept
      : limit_ns_(limit_ns), slack_ns_(std::clamp(limit_ns / 16, kSlackLeastNs, kSlackMostNs)), looked_ns_(now) {}
  static Deadline after_s(double seconds) noexcept { return Deadline(static_cast<std::int64_t>(seconds * 1e9)); }

  /// Counts what has passed since the last look, in which the waiter meant to be away for `away_ns` at most. False when
  /// that took so long that the process cannot have run all the time.
  bool look(std::int64_t away_ns, std::int64_t now = now_ns()) noexcept {
    const std::int64_t passed_ns = now - looked_ns_;
    const std::int64_t most_ns = away_ns + slack_ns_;
    looked_ns_ = now;
    waited_ns_ += std::clamp<std::int64_t>(passed_ns, 0, most_ns);
    return passed_ns <= most_ns;
  }
  /// Looks, after a nap of nap_ms() at most, and tells whether the limit has passed.
  bool is_over() noexcept {
    (void)look(slack_ns_);
    return has_passed();
  }
  /// The same as of the last look.
  bool has_passed() const noexcept { return waited_ns_ > limit_ns_; }
  /// As of the last look.
  std::int64_t waited_ns() const noexcept { return waited_ns_; }
  std::int64_t looked_ns() const noexcept { return looked_ns_; }
  std::int64_t slack_ns() const noexcept { return slack_ns_; }
  /// For poll() between two looks: what is left, rounded up, but no longer than `most_ms` and the slack.
  int nap_ms(int most_ms) const noexcept {
    constexpr std::int64_t kMs = 1'000'000;
    const std::int64_t left_ns = std::clamp<std::int64_t>(limit_ns_ - waited_ns_, kMs, slack_ns_);
    return static_cast<int>(std::min<std::int64_t>((left_ns + kMs - 1) / kMs, most_ms));
  }
  /// Nothing has been waited for yet.
  void restart(std::int64_t now = now_ns()) noexcept {
    waited_ns_ = 0;
    looked_ns_ = now;
  }

 private:
  std::int64_t limit_ns_;
  std::int64_t slack_ns_;
  std::int64_t looked_ns_;
  std::int64_t waited_ns_ = 0;
};

}  // namespace torii
