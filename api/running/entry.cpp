// SPDX-License-Identifier: Apache-2.0
// Callers that come to a team for the first time, or beside many others, or where they may not.
#include "api/running/entry.hpp"

#include "api/calls/last_error.hpp"
#include "runtime/fabric/waiting.hpp"

namespace torii {
namespace {

/// So many pauses take longer than a processor keeps a store to itself.
constexpr int kPausesOfStore = 30;

}  // namespace

TeamUse::Call TeamUse::try_begin_call() noexcept {
  constexpr std::uintptr_t kMarks = kInBackground | kHeld | kCalled;
  const std::uintptr_t own = this_thread();
  std::uintptr_t now = state();
  if (now == 0) (void)state_.compare_exchange_strong(now, own, std::memory_order_relaxed);
  if (try_begin_alone(kMarks)) return Call::alone;
  now = state();
  if (const std::uintptr_t caller = now & ~kMarks; caller != kSeveral) {
    if (caller == own || (now & kHeld) != 0) return Call::refused;
    // From here on that caller finds that it is not alone, or has said before that it is inside.
    const std::uintptr_t shared = kSeveral | (now & kMarks);
    if (!state_.compare_exchange_strong(now, shared, std::memory_order_relaxed)) return Call::refused;
    for (int i = 0; i < kPausesOfStore; ++i) relax();
    now = state();
  }
  const bool is_held = (now & kHeld) != 0 && !is_holder();
  if (is_held || (now & kCalled) != 0 || is_inside_.load(std::memory_order_acquire)) return Call::refused;
  const bool has_begun = state_.compare_exchange_strong(now, now | kCalled, std::memory_order_acquire);
  return has_begun ? begin_marked() : Call::refused;
}

/// The call is marked, so that no other thread comes in meanwhile.
TeamUse::Call TeamUse::begin_marked() noexcept {
  const std::uintptr_t own = this_thread();
  in_row_ = last_ == own ? in_row_ + 1 : 1;
  last_ = own;
  if (in_row_ < kCallsUntilAlone) return Call::marked;
  in_row_ = 0;
  is_inside_.store(true, std::memory_order_relaxed);
  state_.store(own | (state() & (kInBackground | kHeld)), std::memory_order_release);
  return Call::alone;
}

/// In a forked child no lock may be asked: its holder is not there.
Entry::State Entry::enter_slowly(const Context& context, TeamUse& use, CallerLock& lock) noexcept {
  if (context.is_forked_child()) return {TeamUse::Call::refused, false, true};
  const bool is_among_many = use.has_many_callers();
  const TeamUse::Call call = is_among_many ? TeamUse::Call::among_many : use.try_begin_call();
  if (call == TeamUse::Call::refused) return {call};
  const bool needs_lock = is_among_many || use.has(TeamUse::kInBackground);
  if (needs_lock) lock.lock();
  return {call, needs_lock};
}

Status Entry::refuse(bool is_forked) noexcept {
  set_last_error(is_forked ? kForked : kSecondCaller);
  return Status::invalid_argument;
}

}  // namespace torii
