// SPDX-License-Identifier: Apache-2.0
// The three stages of waiting.
#include "runtime/waiting.hpp"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <limits>

namespace torii {
namespace {

// From a prototype on two CPUs, not measured again here: a hand-over by yield takes 1.1 us, by a futex 1.8 us on the
// same core and 16 us across cores. So with more ranks than CPUs a rank polls only while a running peer might answer,
// then yields, and sleeps late.
constexpr std::uint32_t kSpinsShared = 50;
constexpr std::uint32_t kYieldsShared = 200;
/// Over a network each poll is a system call or more, which a rank with work to do on the same CPU pays for; and what
/// is waited for is further away than a sleep and a wake-up take.
constexpr std::uint32_t kSpinsSharedNetwork = 1;
constexpr std::uint32_t kYieldsSharedNetwork = 8;
constexpr std::uint32_t kSpinsAlone = 20000;
constexpr std::uint32_t kYieldsAlone = 2000;
constexpr std::int64_t kSleepLeastUs = 1000;
/// Where only puts over a network wake a rank, and always do, it need not look every millisecond: it then sleeps an
/// eighth of the time that nothing has moved, so that a wake-up that was missed after all delays a call by little. The
/// more ranks there are the longer it may sleep: each asks seldom then, and all use the same CPUs to look.
constexpr std::int64_t kSleepMostUs = 100'000;
constexpr std::int64_t kSleepMostUsPerRank = 20'000;
constexpr std::int64_t kQuietPerSleep = 8;
constexpr std::int64_t kChecksEveryNs = 1'000'000;
/// Polls between two looks at the clock while spinning.
constexpr std::uint32_t kClockEveryPolls = 1024;
constexpr std::uint32_t kClockEveryYields = 32;
constexpr std::uint32_t kForever = std::numeric_limits<std::uint32_t>::max();

void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

std::int64_t now_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

Waiting::Waiting(Transport& transport, WaitMode mode) noexcept
    : transport_(transport),
      spins_(kSpinsAlone),
      yields_(kYieldsAlone),
      sleeps_long_(transport.capabilities().wakes_on_put && !transport.capabilities().mapped),
      is_crowded_(transport.crowded()) {
  if (transport.oversubscribed()) {
    spins_ = sleeps_long_ ? kSpinsSharedNetwork : kSpinsShared;
    yields_ = sleeps_long_ ? kYieldsSharedNetwork : kYieldsShared;
  }
  if (mode == WaitMode::spin) spins_ = kForever;
  if (mode == WaitMode::yield) {
    spins_ = kSpinsShared;
    yields_ = kForever - kSpinsShared;
  }
  if (mode == WaitMode::sleep) {
    spins_ = sleeps_long_ ? kSpinsSharedNetwork : kSpinsShared;
    yields_ = 0;
  }
}

bool Waiting::is_time_for_checks() noexcept {
  const std::int64_t now = now_ns();
  if (quiet_since_ns_ == 0) {
    quiet_since_ns_ = now;
    checked_ns_ = now;
    return false;
  }
  if (now - checked_ns_ < kChecksEveryNs) return false;
  checked_ns_ = now;
  return true;
}

bool Waiting::poll() noexcept {
  if (polls_ < kForever) ++polls_;
  return polls_ % kClockEveryYields == 0 && is_time_for_checks();
}

bool Waiting::pause(bool (*still_idle)(void* data), void* data) noexcept {
  if (polls_ < kForever) ++polls_;
  if (polls_ <= spins_) {
    relax();
    return polls_ % kClockEveryPolls == 0 && is_time_for_checks();
  }
  if (polls_ - spins_ <= yields_) {
    sched_yield();
    return polls_ % kClockEveryYields == 0 && is_time_for_checks();
  }
  has_slept_ = true;
  transport_.sleep(sleep_us(), still_idle, data);
  return is_time_for_checks();
}

int Waiting::sleep_us() const noexcept {
  if (!sleeps_long_ || quiet_since_ns_ == 0) return kSleepLeastUs;
  const std::int64_t quiet_us = (checked_ns_ - quiet_since_ns_) / 1000;
  const std::int64_t most_us = std::max(kSleepMostUs, kSleepMostUsPerRank * transport_.ranks());
  return static_cast<int>(std::clamp(quiet_us / kQuietPerSleep, kSleepLeastUs, most_us));
}

}  // namespace torii
