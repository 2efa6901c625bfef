// SPDX-License-Identifier: Apache-2.0
// The three stages of waiting.
#include "runtime/fabric/waiting.hpp"

#include <algorithm>

#include "runtime/base/tuned_constants.hpp"

namespace torii {
namespace {

// A hand-over by a yield is quicker than by a sleep. So with more ranks than CPUs a rank yields soon and sleeps late.
constexpr auto kSpinsShared = tuned<std::uint32_t>("waiting.polls_shared");
constexpr auto kYieldsShared = tuned<std::uint32_t>("waiting.yields_shared");
constexpr auto kSpinsSharedNetwork = tuned<std::uint32_t>("waiting.polls_shared_network");
constexpr auto kYieldsSharedNetwork = tuned<std::uint32_t>("waiting.yields_shared_network");
constexpr auto kSpinsAlone = tuned<std::uint32_t>("waiting.polls_alone");
constexpr auto kYieldsAlone = tuned<std::uint32_t>("waiting.yields_alone");
constexpr auto kSleepLeastUs = tuned<std::int64_t>("waiting.sleep_least");
/// If only puts over a network can wake a rank, and always do, the rank need not look every millisecond. It then sleeps
/// an eighth of the time that nothing has moved, so that a missed wake-up delays a call by little. The more ranks there
/// are, the longer a rank may sleep: each looks seldom then, and all use the same CPUs to look.
constexpr auto kSleepMostUs = tuned<std::int64_t>("waiting.sleep_most");
constexpr auto kSleepMostUsPerRank = tuned<std::int64_t>("waiting.sleep_most_per_rank");
constexpr auto kQuietPerSleep = tuned<std::int64_t>("waiting.quiet_per_sleep");
constexpr auto kCpuToldAfterNs = tuned<std::int64_t>("waiting.cpu_told_after");
constexpr auto kHopAfterNs = tuned<std::int64_t>("waiting.hop_after");
constexpr auto kChecksEveryNs = tuned<std::int64_t>("waiting.checks_every");
constexpr auto kClockEveryPolls = tuned<std::uint32_t>("waiting.clock_every_polls");
constexpr auto kClockEveryYields = tuned<std::uint32_t>("waiting.clock_every_yields");
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
      sleep_us_most_(kSleepLeastUs),
      spins_(kSpinsAlone),
      awake_(kSpinsAlone + kYieldsAlone),
      quiet_(timeout_ns, 0) {
  const bool sleeps_long = transport.capabilities().wakes_on_put && !transport.capabilities().mapped;
  if (sleeps_long) {
    sleep_us_most_ = static_cast<int>(std::max(kSleepMostUs, kSleepMostUsPerRank * transport.ranks()));
  }
  const std::uint32_t few_spins = sleeps_long ? kSpinsSharedNetwork : kSpinsShared;
  if (transport.oversubscribed() || mode == WaitMode::shared) {
    spins_ = few_spins;
    awake_ = spins_ + (sleeps_long ? kYieldsSharedNetwork : kYieldsShared);
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
  noted_ns_ = kCpuToldAfterNs;
  resumed_ns_ = 0;
  absent_ns_ = 0;
  return false;
}

/// After a look. A hop takes as long as the thread waits for its turn on the other CPU, so it is for pauses only, in
/// which the caller holds no lock. Where ranks outnumber CPUs there is no CPU to go to, and who waits soon yields.
void Waiting::note_wait(bool may_hop) noexcept {
  const std::int64_t waited_ns = quiet_.waited_ns();
  if (waited_ns < noted_ns_ || transport_.oversubscribed()) return;
  noted_ns_ = waited_ns < kHopAfterNs ? kHopAfterNs : waited_ns + kChecksEveryNs;
  transport_.note_wait(may_hop ? waited_ns : 0, quiet_.looked_ns());
}

bool Waiting::is_time_for_checks(std::int64_t away_ns) noexcept {
  const bool is_first = !has_looked_;
  const bool has_run = look(away_ns);
  note_wait(true);
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

/// The caller may be away for as long as it likes between two polls, to compute. Such time is neither waiting nor a
/// sign that the process did not run. One that polls so rarely looks at the clock each time.
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
  if (!polls_rarely_) note_wait(false);  // who is mostly away does not keep its CPU busy
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
  transport_.sleep(mark_, us, still_idle, data);
  return is_time_for_checks(us * std::int64_t{1000});
}

void Waiting::serve_others() noexcept { sleep_us_most_ = kSleepServingUs; }

int Waiting::sleep_us() const noexcept {
  const std::int64_t us = std::max(quiet_ns() / 1000 / kQuietPerSleep, kSleepLeastUs);
  return static_cast<int>(std::min<std::int64_t>(us, sleep_us_most_));
}

}  // namespace torii
