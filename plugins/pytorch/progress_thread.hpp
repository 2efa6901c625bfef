// SPDX-License-Identifier: Apache-2.0
// The thread that moves a group's operations while nobody waits for them.
#pragma once

#include <condition_variable>
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
class ProgressThread {
 public:
  explicit ProgressThread(std::shared_ptr<Team> team) : team_(std::move(team)) {}
  ~ProgressThread();
  ProgressThread& operator=(const ProgressThread&) = delete;

  void add(c10::intrusive_ptr<Work> work);
  /// Somebody waits for the end of an operation without driving it: begin at once.
  void hurry();
  /// The operations that have not ended.
  std::vector<c10::intrusive_ptr<Work>> pending();
  /// Takes receives back, waits for the rest for some seconds, then aborts the team. No operation is added afterwards.
  void stop();

 private:
  void run();
  void drop_ended(std::unique_lock<std::mutex>& lock);
  bool must_wait_for_callers() const;
  void sleep(std::unique_lock<std::mutex>& lock);
  void pause(std::unique_lock<std::mutex>& lock, int rounds);
  bool move(const std::vector<c10::intrusive_ptr<Work>>& works, bool is_stopping);

  std::shared_ptr<Team> team_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable has_emptied_;
  std::vector<c10::intrusive_ptr<Work>> works_;
  std::chrono::steady_clock::time_point last_used_;
  bool is_asleep_ = false;
  bool is_hurried_ = false;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace torii_torch
