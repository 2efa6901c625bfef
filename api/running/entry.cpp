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

bool TeamUse::try_begin_call() noexcept {
  if (has(kCalled)) return false;
  if (has(kHeld)) {
    if (!is_holder()) return false;
  } else if (!is_last_caller()) {
    void* last = last_caller_.load(std::memory_order_relaxed);
    void* const own = __builtin_thread_pointer();
    if (!last_caller_.compare_exchange_strong(last, own, std::memory_order_relaxed)) return false;
    for (int i = 0; i < kPausesOfStore; ++i) relax();
    if (has(kCalled | kHeld) || !is_last_caller()) return false;
  }
  add(kCalled);
  return true;
}

/// In a forked child no lock may be asked: its holder is not there.
unsigned Entry::enter_slowly(const Context& context, TeamUse& use, CallerLock& lock) noexcept {
  if (context.is_forked_child()) return kIsForked;
  unsigned state = 0;
  if (!use.has(TeamUse::kManyCallers)) {
    if (!use.try_begin_call()) return kIsSecond;
    state = kIsCall;
  }
  if (use.has(TeamUse::kManyCallers | TeamUse::kInBackground)) {
    lock.lock();
    state |= kHasLock;
  }
  return state;
}

Status Entry::refuse(bool is_forked) noexcept {
  set_last_error(is_forked ? kForked : kSecondCaller);
  return Status::invalid_argument;
}

}  // namespace torii
