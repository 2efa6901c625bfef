// SPDX-License-Identifier: Apache-2.0
// A caller's way into a team. The way is refused in a forked child, and beside another call on a team that has one
// caller at a time.
#pragma once

#include <atomic>
#include <cstdint>

#include "api/context/context.hpp"
#include "api/running/caller_lock.hpp"
#include "runtime/base/status.hpp"

namespace torii {

inline constexpr const char* kForked =
    "this process was forked from the one that made the context: it may only exec or exit";
inline constexpr const char* kSecondCaller =
    "another call of this rank is under way on this team; make one call at a time, or make the team with many_callers";

/// The use of a team: who calls, and marks. While one thread alone has called, it finds by plain loads that the team is
/// all its own, says by a plain store that it is inside, and looks once more whether it is still alone. An exchange in
/// each call would cost as much as a message. The first call of a second thread ends that: it says so, waits until a
/// store of the first thread has most likely come, and looks for it. However long the first thread stands still between
/// its steps, one of the two sees the other. From then on all threads mark their calls by an exchange, until one of
/// them has made so many in a row that the first thread cannot still stand between those steps. Only the refusal of
/// wrong programs depends on all this. Threads that make calls one after the other have an order of their own between
/// them, by which each sees the marks of the one before.
class TeamUse {
 public:
  static constexpr std::uintptr_t kInBackground = 1;
  static constexpr std::uintptr_t kHeld = 2;  ///< one thread makes several calls, between which no other one may call
  /// They take a tenth of a second at least, longer than a busy processor lets a thread stand still.
  static constexpr std::uint32_t kCallsUntilAlone = 1U << 22;
  /// How a call has begun, and so how it ends.
  enum class Call : std::uint8_t { refused, alone, marked, among_many };

  explicit TeamUse(bool many_callers) noexcept : many_callers_(many_callers) {}

  bool has_many_callers() const noexcept { return many_callers_; }
  bool has(std::uintptr_t mark) const noexcept { return (state() & mark) != 0; }
  // For a thread that is inside. A second thread may come meanwhile, so that a plain store could undo what it has said.
  void add(std::uintptr_t mark) noexcept { state_.fetch_or(mark, std::memory_order_relaxed); }
  void remove(std::uintptr_t mark) noexcept { state_.fetch_and(~mark, std::memory_order_relaxed); }

  /// The call of the thread that alone has called. `marks`: those that the team may have. False if another thread has
  /// called, or if this one is inside.
  [[gnu::always_inline]] bool try_begin_alone(std::uintptr_t marks) noexcept {
    const auto is_alone = [&] { return (state() & ~marks) == this_thread(); };
    if (!is_alone()) [[unlikely]] {
      return false;
    }
    if (is_inside_.load(std::memory_order_relaxed)) [[unlikely]] {
      return false;
    }
    is_inside_.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (is_alone()) [[likely]] {
      return true;
    }
    end_alone();
    return false;
  }
  void end_alone() noexcept { is_inside_.store(false, std::memory_order_release); }
  /// The call of any thread, as the one caller. Refused if a thread is inside, or if another one holds the team.
  Call try_begin_call() noexcept;
  void end_call(Call call) noexcept {
    if (call == Call::alone) return end_alone();
    // No other thread changes the state while a call is marked.
    if (call == Call::marked) state_.store(state() & ~kCalled, std::memory_order_release);
  }
  /// Whether try_begin_call() would refuse this thread now.
  bool is_taken() const noexcept {
    const bool is_called = has(kCalled) || is_inside_.load(std::memory_order_acquire);
    return is_called || (has(kHeld) && !is_holder());
  }

  void hold() noexcept {
    holder_.store(this_thread(), std::memory_order_relaxed);
    add(kHeld);
  }
  void let_go() noexcept {
    holder_.store(0, std::memory_order_relaxed);
    remove(kHeld);
  }

 private:
  static constexpr std::uintptr_t kCalled = 4;   ///< a thread is inside that has marked its call by an exchange
  static constexpr std::uintptr_t kSeveral = 8;  ///< the place of no thread: several threads have called

  Call begin_marked() noexcept;
  /// The place of the thread's control block. Pointers are in that, so it leaves the bits of marks free.
  static std::uintptr_t this_thread() noexcept { return reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer()); }
  std::uintptr_t state() const noexcept { return state_.load(std::memory_order_relaxed); }
  bool is_holder() const noexcept { return holder_.load(std::memory_order_relaxed) == this_thread(); }

  std::atomic<std::uintptr_t> state_ = 0;  ///< the thread that alone has called, kSeveral or 0; and marks
  std::atomic<bool> is_inside_ = false;    ///< written by the thread that alone has called, or that has just been so
  const bool many_callers_;                ///< then there are no calls here: the callers have a lock
  std::atomic<std::uintptr_t> holder_ = 0;
  std::uintptr_t last_ = 0;   ///< the last thread that has marked a call; for the one that does
  std::uint32_t in_row_ = 0;  ///< so many calls that thread has marked one after the other
};

/// A caller inside the team, while it lives: keeps other callers and the background out, unless it is refused.
class Entry {
 public:
  Entry(const Context& context, TeamUse& use, CallerLock& lock) noexcept
      : use_(use), lock_(lock), state_(enter(context, use, lock)) {}
  ~Entry() {
    if (state_.has_lock) lock_.unlock();
    use_.end_call(state_.call);
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  /// The caller must leave at once, with refuse(). A refusal is no call of the rank, so peers do not hear of it.
  bool is_refused() const noexcept { return state_.call == TeamUse::Call::refused; }
  Status refuse() const noexcept { return refuse(state_.is_forked); }
  static Status refuse(bool is_forked) noexcept;

 private:
  struct State {
    TeamUse::Call call;
    bool has_lock = false;
    bool is_forked = false;
  };

  static State enter(const Context& context, TeamUse& use, CallerLock& lock) noexcept {
    constexpr std::uintptr_t kMarks = TeamUse::kInBackground | TeamUse::kHeld;
    if (context.is_forked_child() || !use.try_begin_alone(kMarks)) [[unlikely]] {
      return enter_slowly(context, use, lock);
    }
    const bool needs_lock = use.has(TeamUse::kInBackground);
    if (needs_lock) lock.lock();
    return {TeamUse::Call::alone, needs_lock};
  }
  static State enter_slowly(const Context& context, TeamUse& use, CallerLock& lock) noexcept;

  TeamUse& use_;
  CallerLock& lock_;
  const State state_;
};

/// A caller that makes several calls one after the other, while it lives: other callers are refused between them too.
/// Where a team has many callers, they make sure of that themselves.
class Hold {
 public:
  Hold(const Context& context, TeamUse& use, CallerLock& lock) noexcept : use_(use) {
    const Entry entry(context, use, lock);
    refusal_ = entry.is_refused() ? entry.refuse() : Status::ok;
    if (entry.is_refused() || use.has_many_callers() || use.has(TeamUse::kHeld)) return;
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
