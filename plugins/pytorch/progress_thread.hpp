// SPDX-License-Identifier: Apache-2.0
// The thread that moves a group's operations while nobody waits for them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "plugins/pytorch/team.hpp"
#include "plugins/pytorch/work.hpp"

namespace torii_torch {

/// Begins with the first operation that it is given. It leaves operations alone for some microseconds, since mostly
/// their callers come to wait, and sleeps while there are none.
///
/// One thread polls. It also completes futures, whose callbacks may wait for other operations. A stand-in is made when
/// callbacks run while other operations are under way. It polls if the callbacks start or wait for something, or take
/// long. Each thread whose callbacks wait needs one more.
class ProgressThread : public std::enable_shared_from_this<ProgressThread> {
 public:
  explicit ProgressThread(std::shared_ptr<Team> team) : team_(std::move(team)) {}
  ProgressThread& operator=(const ProgressThread&) = delete;

  void add(c10::intrusive_ptr<Work> work);
  /// Somebody waits for the end of an operation without driving it: begin at once.
  void hurry();
  /// The operations that have not ended.
  std::vector<c10::intrusive_ptr<Work>> pending();
  /// Takes receives back, waits for the rest for some seconds, then aborts the team. No operation is added afterwards.
  /// The threads have ended when it returns, unless a callback in a progress thread calls it. Callbacks may wait for
  /// each other, so such threads end by themselves.
  void stop();
  /// Waits for the callbacks of all groups and for the threads that stop() has left to themselves, before the
  /// interpreter ends.
  static void wait_for_busy_threads();
  /// A forked child has none of them.
  static void forget_busy_threads() noexcept;

 private:
  void begin_thread();
  bool run();
  bool take_place(std::unique_lock<std::mutex>& lock);
  void call_stand_in();
  void drop_ended(std::unique_lock<std::mutex>& lock);
  bool must_wait_for_callers() const;
  void sleep(std::unique_lock<std::mutex>& lock);
  void pause(std::unique_lock<std::mutex>& lock, int rounds);
  bool move(const std::vector<c10::intrusive_ptr<Work>>& works, bool is_stopping);
  bool call_back(Work& work);

  std::shared_ptr<Team> team_;
  std::mutex mutex_;
  std::condition_variable wake_;  ///< for the thread that polls
  std::condition_variable has_emptied_;
  std::vector<c10::intrusive_ptr<Work>> works_;
  std::chrono::steady_clock::time_point last_used_;
  bool is_asleep_ = false;
  bool is_hurried_ = false;
  bool is_stopping_ = false;
  bool is_left_ = false;  ///< the threads end by themselves
  std::vector<std::thread> threads_;
  int living_ = 0;                   ///< threads that have not ended
  std::condition_variable standby_;  ///< for stand-ins
  std::thread::id polling_;          ///< the thread that polls, unless it is away in callbacks
  bool is_away_ = false;
  bool callback_waits_ = false;  ///< it will probably wait: its place is free
  uint64_t callbacks_ = 0;       ///< how often the thread that polls has gone away
  int stand_ins_ = 0;            ///< threads that neither poll nor run callbacks
  bool is_watched_ = false;      ///< a stand-in looks by itself whether callbacks take long
};

}  // namespace torii_torch
