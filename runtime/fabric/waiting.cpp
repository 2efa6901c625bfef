// SPDX-License-Identifier: Apache-2.0
// The three stages of waiting.
#include "runtime/fabric/waiting.hpp"

#include <algorithm>

namespace torii {
namespace {

// From a prototype on two CPUs, not measured again here: a hand-over by yield takes 1.1 us, by a futex 1.8 us on the
// same core and 16 us across cores. So with more ranks than CPUs a rank yields soon, and sleeps late. It polls only a
// few times before: the peer it waits for most often waits for this CPU (perf/results/2026-11-24-spins-shared.txt has 1
// to 50 polls).
constexpr std::uint32_t kSpinsShared = 5;
constexpr std::uint32_t kYieldsShared = 200;
/// Over a network each poll is a system call or more, which a rank with work to do on the same CPU pays for; and what
/// is waited for is further away than a sleep and a wake-up take.
constexpr std::uint32_t kSpinsSharedNetwork = 1;
constexpr std::uint32_t kYieldsSharedNetwork = 8;
constexpr std::uint32_t kSpinsAlone = 20000;
constexpr std::uint32_t kYieldsAlone = 2000;
constexpr std::int64_t kSleepLeastUs = 1000;
/// A rank that only puts over a network can wake, and always do, need not look every millisecond: it then sleeps an
/// eighth of the time that nothing has moved, so that a wake-up that was missed after all delays a call by little. The
/// more ranks there are the longer it may sleep: each asks seldom then, and all use the same CPUs to look.
constexpr std::int64_t kSleepMostUs = 100'000;
constexpr std::int64_t kSleepMostUsPerRank = 20'000;
constexpr std::int64_t kQuietPerSleep = 8;
constexpr std::int64_t kChecksEveryNs = 1'000'000;
/// Polls between two looks at the clock while spinning.
constexpr std::uint32_t kClockEveryPolls = 1024;
constexpr std::uint32_t kClockEveryYields = 32;
/// More than the count of polls ever is.
constexpr std::uint32_t kForever = 2 * Waiting::kPollsMost;
static_assert(kSpinsAlone + kYieldsAlone + kClockEveryPolls < Waiting::kPollsMost, "who sleeps goes on sleeping");

}  // namespace

void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

Waiting::Waiting(Transport& transport, WaitMode mode, std::int64_t timeout_ns) noexcept
    : transport_(transport),
      spins_(kSpinsAlone),
      awake_(kSpinsAlone + kYieldsAlone),
      sleeps_long_(transport.capabilities().wakes_on_put && !transport.capabilities().mapped),
      polling_is_costly_(transport.polling_is_costly()),
      quiet_(timeout_ns, 0) {
  const std::uint32_t few_spins = sleeps_long_ ? kSpinsSharedNetwork : kSpinsShared;
  if (transport.oversubscribed() || mode == WaitMode::shared) {
    spins_ = few_spins;
    awake_ = spins_ + (sleeps_long_ ? kYieldsSharedNetwork : kYieldsShared);
  }
  if (mode == WaitMode::spin) spins_ = awake_ = kForever;
  if (mode == WaitMode::yield) {
    spins_ = kSpinsShared;
    awake_ = kForever;
  }
  if (mode == WaitMode::sleep) spins_ = awake_ = few_spins;
}

/// Looks at the clock. False for the first look since something moved, which says nothing yet, and for one that finds
/// that this process did not run meanwhile.
bool Waiting::look(std::int64_t away_ns) noexcept {
  const std::int64_t now = transport_.clock_ns();
  if (has_looked_) return quiet_.look(away_ns, now);
  has_looked_ = true;
  quiet_.restart(now);
  checked_ns_ = now;
  resumed_ns_ = 0;
  absent_ns_ = 0;
  return false;
}

bool Waiting::is_time_for_checks(std::int64_t away_ns) noexcept {
  const bool is_first = !has_looked_;
  const bool has_run = look(away_ns);
  const std::int64_t now = quiet_.looked_ns();
  // Only once in a row: where CPUs are always that late the checks are made all the same.
  if (!is_first && !has_run && resumed_ns_ != checked_ns_) {
    resumed_ns_ = checked_ns_ = now;
    absent_ns_ = quiet_.waited_ns();
    return false;
  }
  if (is_first || now - checked_ns_ < kChecksEveryNs) return false;
  checked_ns_ = now;
  return true;
}

/// The caller may be away for as long as it likes between two polls, to compute: that is neither waiting nor a sign
/// that the process did not run. One that polls so rarely looks at the clock each time.
bool Waiting::poll() noexcept {
  count();
  return (polls_ % kClockEveryYields == 0 || polls_rarely_) && poll_after(0);
}

bool Waiting::poll_after(std::int64_t away_ns) noexcept {
  const bool is_first = !has_looked_;
  const std::int64_t before_ns = quiet_.looked_ns();
  (void)look(away_ns);
  const std::int64_t now = quiet_.looked_ns();
  polls_rarely_ = is_first || now - before_ns > kChecksEveryNs;
  if (is_first || now - checked_ns_ < kChecksEveryNs) return false;
  checked_ns_ = now;
  return true;
}

bool Waiting::pause(bool (*still_idle)(void* data), void* data) noexcept {
  count();
  if (polls_ <= spins_) {
    relax();
    return polls_ % kClockEveryPolls == 0 && is_time_for_checks(0);
  }
  if (polls_ <= awake_) {
    platform().yield();
    return polls_ % kClockEveryYields == 0 && is_time_for_checks(0);
  }
  has_slept_ = true;
  Counters::add(transport_.counters().sleeps);
  const int us = sleep_us();
  transport_.sleep(us, still_idle, data);
  return is_time_for_checks(us * std::int64_t{1000});
}

int Waiting::sleep_us() const noexcept {
  if (!sleeps_long_) return kSleepLeastUs;
  const std::int64_t most_us = std::max(kSleepMostUs, kSleepMostUsPerRank * transport_.ranks());
  return static_cast<int>(std::clamp(quiet_ns() / 1000 / kQuietPerSleep, kSleepLeastUs, most_us));
}

}  // namespace torii
