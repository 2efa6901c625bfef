// SPDX-License-Identifier: Apache-2.0
// The loop of the progress thread.
#include "plugins/pytorch/progress_thread.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>

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

/// Signals belong to the threads of the program.
void start_without_signals(std::thread& thread, auto function) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread = std::thread(function);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

ProgressThread::~ProgressThread() { stop(); }

void ProgressThread::add(c10::intrusive_ptr<Work> work) {
  bool must_wake = false;
  {
    const std::lock_guard lock(mutex_);
    works_.push_back(std::move(work));
    last_used_ = Clock::now();
    must_wake = is_asleep_;
    is_asleep_ = false;
    if (!thread_.joinable()) start_without_signals(thread_, [this] { run(); });
  }
  if (must_wake) wake_.notify_one();
}

void ProgressThread::hurry() {
  {
    const std::lock_guard lock(mutex_);
    is_hurried_ = true;
    is_asleep_ = false;
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
  {
    std::unique_lock lock(mutex_);
    if (!thread_.joinable()) return;
    is_stopping_ = true;
    is_asleep_ = false;
    wake_.notify_one();
    if (!has_emptied_.wait_for(lock, kGrace, [this] { return works_.empty(); })) {
      lock.unlock();
      (void)torii_team_abort(team_->get(), "the group was destroyed with operations under way");
    }
  }
  thread_.join();
}

void ProgressThread::run() {
  prctl(PR_SET_TIMERSLACK, kTimerSlackNanoseconds);
  int idle_rounds = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    drop_ended(lock);
    if (works_.empty() && is_stopping_) return;
    if (works_.empty()) {
      idle_rounds = 0;
      sleep(lock);
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
    if (work->poll()) {
      has_moved = true;
    } else {
      work->release();
    }
  }
  return has_moved;
}

}  // namespace torii_torch
