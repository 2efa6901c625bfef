// SPDX-License-Identifier: Apache-2.0
// The loop of the progress thread.
#include "plugins/pytorch/progress_thread.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <atomic>

namespace torii_torch {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

/// A caller that waits comes within this time after the start.
constexpr microseconds kCallersTime{50};
/// While operations come, the thread looks for new ones by itself, so that starts need not wake it.
constexpr microseconds kLook{200};
constexpr milliseconds kStayAwake{20};
/// Rounds without progress that only yield the CPU; then pauses, which double. A thread that slept in torii's own waits
/// would spin there first, and take the CPU from the computation that the operations run beside.
constexpr int kYields = 4;
constexpr microseconds kShortestPause{20};
constexpr microseconds kLongestPause{1000};
/// The longest pause while somebody waits for a future, which this thread alone can complete.
constexpr microseconds kHurriedPause{40};
/// The kernel may end pauses this much later; by default that is 50 us.
constexpr unsigned long kTimerSlackNanoseconds = 1000;
/// How long a group that is destroyed waits for its operations.
constexpr std::chrono::seconds kGrace{5};
/// Callbacks that run longer may wait for an operation that began before them. Until then those of other operations are
/// not begun beside them, so that mostly they come in the order of operations, as with one thread.
constexpr milliseconds kPatience{10};

/// Threads that run callbacks, and threads that no stop() joins.
std::atomic<int> busy_threads = 0;
/// True in progress threads, of any group.
thread_local bool is_progress_thread = false;

void leave_busy_threads() {
  if (--busy_threads == 0) busy_threads.notify_all();
}

/// Signals belong to the threads of the program.
std::thread start_without_signals(auto function) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(function));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

void ProgressThread::add(c10::intrusive_ptr<Work> work) {
  bool must_wake = false;
  {
    const std::lock_guard lock(mutex_);
    works_.push_back(std::move(work));
    last_used_ = Clock::now();
    must_wake = is_asleep_;
    is_asleep_ = false;
    if (living_ == 0) begin_thread();
    if (is_away_) call_stand_in();
  }
  if (must_wake) wake_.notify_one();
}

void ProgressThread::hurry() {
  {
    const std::lock_guard lock(mutex_);
    is_hurried_ = true;
    is_asleep_ = false;
    if (is_away_) call_stand_in();
  }
  wake_.notify_one();
}

std::vector<c10::intrusive_ptr<Work>> ProgressThread::pending() {
  std::vector<c10::intrusive_ptr<Work>> found;
  const std::lock_guard lock(mutex_);
  for (const auto& work : works_) {
    if (!work->has_ended()) found.push_back(work);
  }
  return found;
}

void ProgressThread::stop() {
  std::unique_lock lock(mutex_);
  is_stopping_ = true;
  is_asleep_ = false;
  wake_.notify_one();
  drop_ended(lock);
  if (polling_ == std::this_thread::get_id()) is_away_ = true;
  if (is_away_ && !works_.empty()) call_stand_in();
  if (!has_emptied_.wait_for(lock, kGrace, [this] { return works_.empty(); })) {
    lock.unlock();
    (void)torii_team_abort(team_->get(), "the group was destroyed with operations under way");
    lock.lock();
  }
  while (!is_progress_thread && !threads_.empty()) {
    std::thread thread = std::move(threads_.back());
    threads_.pop_back();
    lock.unlock();
    thread.join();
    lock.lock();
  }
  is_left_ = true;
  busy_threads += living_;
  for (std::thread& thread : threads_) thread.detach();
  threads_.clear();
}

void ProgressThread::wait_for_busy_threads() {
  for (int count = busy_threads; count > 0; count = busy_threads) busy_threads.wait(count);
}

void ProgressThread::forget_busy_threads() noexcept { busy_threads = 0; }

// ---- the threads

void ProgressThread::begin_thread() {
  std::thread thread = start_without_signals([self = shared_from_this()]() mutable {
    is_progress_thread = true;
    const bool is_left = self->run();
    // It may be the last reference to the team.
    self.reset();
    if (is_left) leave_busy_threads();
  });
  ++living_;
  ++stand_ins_;
  if (is_left_) {
    ++busy_threads;
    thread.detach();
  } else {
    threads_.push_back(std::move(thread));
  }
}

/// Whether nobody joins this thread.
bool ProgressThread::run() {
  prctl(PR_SET_TIMERSLACK, kTimerSlackNanoseconds);
  int idle_rounds = 0;
  std::unique_lock lock(mutex_);
  while (take_place(lock)) {
    drop_ended(lock);
    if (works_.empty()) {
      idle_rounds = 0;
      if (!is_stopping_) sleep(lock);
    } else if (must_wait_for_callers()) {
      wake_.wait_for(lock, kCallersTime);
    } else {
      auto works = works_;
      const bool is_stopping = is_stopping_;
      lock.unlock();
      idle_rounds = move(works, is_stopping) ? 0 : idle_rounds + 1;
      works.clear();
      if (idle_rounds > 0 && idle_rounds <= kYields) sched_yield();
      lock.lock();
      if (idle_rounds > kYields) pause(lock, idle_rounds - kYields);
    }
  }
  --living_;
  return is_left_;
}

/// Waits until this thread polls. False: the group is destroyed, and its operations have ended.
bool ProgressThread::take_place(std::unique_lock<std::mutex>& lock) {
  uint64_t seen = callbacks_ - 1;
  while (!is_stopping_ || !works_.empty()) {
    if (polling_ == std::this_thread::get_id()) return true;
    const bool take_long = callback_waits_ || callbacks_ == seen;
    if (polling_ == std::thread::id() || (is_away_ && take_long && !works_.empty())) {
      polling_ = std::this_thread::get_id();
      is_away_ = is_watched_ = false;
      --stand_ins_;
      return true;
    }
    is_watched_ = callbacks_ != seen;
    seen = callbacks_;
    if (is_watched_) {
      standby_.wait_for(lock, kPatience);
    } else {
      standby_.wait(lock);
    }
  }
  return false;
}

/// Makes sure that a thread looks after the one that is away. Callbacks that start an operation, or ask for a future,
/// probably wait for it next.
void ProgressThread::call_stand_in() {
  if (is_progress_thread) callback_waits_ = true;
  if (stand_ins_ == 0) {
    begin_thread();
  } else if (callback_waits_ || !is_watched_) {
    standby_.notify_one();
  }
}

/// Completes the future of a work that has ended. False: another thread polls now.
bool ProgressThread::call_back(Work& work) {
  auto future = work.take_future();
  if (!future) return true;
  std::unique_lock lock(mutex_);
  is_away_ = true;
  callback_waits_ = false;
  ++callbacks_;
  const bool is_last = std::all_of(works_.begin(), works_.end(), [](const auto& one) { return one->has_ended(); });
  if (!is_last) {
    if (stand_ins_ == 0) begin_thread();
    if (!is_watched_) standby_.notify_one();
  }
  lock.unlock();
  ++busy_threads;
  work.complete(future);
  future.reset();
  leave_busy_threads();
  lock.lock();
  if (polling_ != std::this_thread::get_id()) {
    ++stand_ins_;
    return false;
  }
  is_away_ = false;
  return true;
}

void ProgressThread::pause(std::unique_lock<std::mutex>& lock, int rounds) {
  const microseconds doubled = kShortestPause * (1 << std::min(rounds - 1, 6));
  wake_.wait_for(lock, std::min(doubled, is_hurried_ ? kHurriedPause : kLongestPause));
}

/// References are given up outside the lock, since the last one to a tensor may run Python.
void ProgressThread::drop_ended(std::unique_lock<std::mutex>& lock) {
  std::vector<c10::intrusive_ptr<Work>> ended;
  const auto begin =
      std::stable_partition(works_.begin(), works_.end(), [](const auto& work) { return !work->has_ended(); });
  std::move(begin, works_.end(), std::back_inserter(ended));
  works_.erase(begin, works_.end());
  if (works_.empty()) {
    is_hurried_ = false;
    has_emptied_.notify_all();
    if (is_stopping_) standby_.notify_all();
  }
  if (ended.empty()) return;
  lock.unlock();
  ended.clear();
  lock.lock();
}

bool ProgressThread::must_wait_for_callers() const {
  return !is_hurried_ && !is_stopping_ && Clock::now() - works_.front()->started() < kCallersTime;
}

void ProgressThread::sleep(std::unique_lock<std::mutex>& lock) {
  if (Clock::now() - last_used_ < kStayAwake) {
    wake_.wait_for(lock, kLook);
    return;
  }
  is_asleep_ = true;
  wake_.wait(lock, [this] { return !is_asleep_; });
}

/// Moves all operations, and looks at those that no caller drives. False: nothing has moved.
bool ProgressThread::move(const std::vector<c10::intrusive_ptr<Work>>& works, bool is_stopping) {
  bool has_moved = team_->move();
  for (const auto& work : works) {
    if (!work->claim()) continue;
    if (is_stopping) work->cancel();
    if (!work->poll()) {
      work->release();
      continue;
    }
    has_moved = true;
    if (!call_back(*work)) break;
  }
  return has_moved;
}

}  // namespace torii_torch
