// SPDX-License-Identifier: Apache-2.0
// A caller's way into a team. The way is refused in a forked child, and beside another call on a team that has one
// caller at a time.
#pragma once

#include <atomic>

#include "api/context/context.hpp"
#include "api/running/caller_lock.hpp"
#include "runtime/base/status.hpp"

namespace torii {

inline constexpr const char* kForked =
    "this process was forked from the one that made the context: it may only exec or exit";
inline constexpr const char* kSecondCaller =
    "another call of this rank is under way on this team; make one call at a time, or make the team with many_callers";

/// The use of a team: the thread that called last, and marks. That thread finds by two plain loads that the team is all
/// its own, and says by a plain store that it is inside. An exchange in each call would cost as much as a message. A
/// thread that takes over pays for both: it looks again when a store of the last one has most likely come. Only the
/// refusal of wrong programs depends on that. Threads that make calls one after the other have an order of their own
/// between them, by which each sees the marks of the one before.
class TeamUse {
 public:
  static constexpr unsigned kManyCallers = 1;
  static constexpr unsigned kInBackground = 2;
  static constexpr unsigned kCalled = 4;  ///< the one caller is inside
  static constexpr unsigned kHeld = 8;    ///< one thread makes several calls, between which no other one may call

  explicit TeamUse(bool many_callers) noexcept : marks_(many_callers ? kManyCallers : 0U) {}

  unsigned marks() const noexcept { return marks_.load(std::memory_order_relaxed); }
  bool has(unsigned any) const noexcept { return (marks() & any) != 0; }
  void set(unsigned marks) noexcept { marks_.store(marks, std::memory_order_relaxed); }
  void add(unsigned mark) noexcept { set(marks() | mark); }
  void remove(unsigned mark) noexcept { set(marks() & ~mark); }
  /// Whether this thread was the last one that called, as the one caller.
  bool is_last_caller() const noexcept {
    return last_caller_.load(std::memory_order_relaxed) == __builtin_thread_pointer();
  }
  /// The call of a thread that may be another one than the last. False if a thread is inside or holds the team.
  bool try_begin_call() noexcept;

  // For a thread that is inside.
  bool is_holder() const noexcept { return holder_.load(std::memory_order_relaxed) == __builtin_thread_pointer(); }
  void hold() noexcept {
    holder_.store(__builtin_thread_pointer(), std::memory_order_relaxed);
    add(kHeld);
  }
  void let_go() noexcept {
    holder_.store(nullptr, std::memory_order_relaxed);
    remove(kHeld);
  }

 private:
  std::atomic<void*> last_caller_ = nullptr;
  std::atomic<void*> holder_ = nullptr;
  std::atomic<unsigned> marks_;
};

/// A caller inside the team, while it lives: keeps other callers and the background out, unless it is refused.
class Entry {
 public:
  Entry(const Context& context, TeamUse& use, CallerLock& lock) noexcept
      : use_(use), lock_(lock), state_(enter(context, use, lock)) {}
  ~Entry() {
    if ((state_ & kHasLock) != 0) lock_.unlock();
    if ((state_ & kIsCall) != 0) use_.remove(TeamUse::kCalled);
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  /// The caller must leave at once, with refuse(). A refusal is no call of the rank, so peers do not hear of it.
  bool is_refused() const noexcept { return (state_ & (kIsForked | kIsSecond)) != 0; }
  Status refuse() const noexcept { return refuse((state_ & kIsForked) != 0); }
  static Status refuse(bool is_forked) noexcept;

 private:
  static constexpr unsigned kHasLock = 1;
  static constexpr unsigned kIsCall = 2;
  static constexpr unsigned kIsForked = 4;
  static constexpr unsigned kIsSecond = 8;

  static unsigned enter(const Context& context, TeamUse& use, CallerLock& lock) noexcept {
    const unsigned marks = use.marks();
    constexpr unsigned kSlow = TeamUse::kManyCallers | TeamUse::kCalled | TeamUse::kHeld;
    const bool is_own = use.is_last_caller() && (marks & kSlow) == 0;
    if (!is_own || context.is_forked_child()) [[unlikely]] {
      return enter_slowly(context, use, lock);
    }
    use.set(marks | TeamUse::kCalled);
    if ((marks & TeamUse::kInBackground) == 0) return kIsCall;
    lock.lock();
    return kIsCall | kHasLock;
  }
  static unsigned enter_slowly(const Context& context, TeamUse& use, CallerLock& lock) noexcept;

  TeamUse& use_;
  CallerLock& lock_;
  const unsigned state_;
};

/// A caller that makes several calls one after the other, while it lives: other callers are refused between them too.
/// Where a team has many callers, they make sure of that themselves.
class Hold {
 public:
  Hold(const Context& context, TeamUse& use, CallerLock& lock) noexcept : use_(use) {
    const Entry entry(context, use, lock);
    refusal_ = entry.is_refused() ? entry.refuse() : Status::ok;
    if (entry.is_refused() || use.has(TeamUse::kManyCallers | TeamUse::kHeld)) return;
    use.hold();
    holds_ = true;
  }
  ~Hold() {
    if (holds_) use_.let_go();
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  /// ok, or why the caller must leave at once, as of Entry.
  Status refusal() const noexcept { return refusal_; }

 private:
  TeamUse& use_;
  Status refusal_;
  bool holds_ = false;
};

}  // namespace torii
