// SPDX-License-Identifier: Apache-2.0
// One operation under way, as PyTorch sees it.
#pragma once

#include <torii/torii.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "plugins/pytorch/team.hpp"
#include "plugins/pytorch/torch_version.hpp"

namespace torii_torch {

class ProgressThread;

/// A group's order to torii: calls that start one after the other, and the tensors that belong to them.
struct Operation {
  c10d::OpType type = c10d::OpType::UNKNOWN;
  const char* title = "";  ///< the profiler's name, such as "torii:all_reduce"
  std::vector<torii_call> calls = {};
  std::vector<at::Tensor> inputs = {};          ///< as the caller gave them; the profiler asks for their shapes
  std::vector<at::Tensor> results = {};         ///< what Work::result() and futures give
  std::vector<at::Tensor> packed = {};          ///< copies that torii reads and writes instead
  std::deque<std::vector<size_t>> counts = {};  ///< of blocks of unequal lengths
  std::deque<std::vector<void*>> blocks = {};   ///< addresses of blocks
  std::function<void()> finish = {};            ///< after success: moves results out of packed memory
};

/// torii's requests of one operation. At most one thread at a time drives them: a caller that waits, or the progress
/// thread. Whoever finds the last one ended completes the work.
class Work final : public c10d::Work {
 public:
  Work(std::shared_ptr<Team> team, Operation operation);

  // For PyTorch.
  bool isCompleted() override;
  std::vector<at::Tensor> result() override;
  int sourceRank() const override;
  bool wait(std::chrono::milliseconds timeout) override;
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

  // For the group, before others see the work.
  void run();    ///< to the end, in this thread
  void start();  ///< without waiting
  void start_send(const void* buffer, size_t count, torii_type elements, int to, int tag);
  void start_receive(void* buffer, size_t count, torii_type elements, int from, int tag);
  void end(torii_status status);  ///< for an operation that has run without a request
  void end(std::exception_ptr error);
  /// Ends after these too, as a barrier does.
  void end_after(std::vector<c10::intrusive_ptr<Work>> earlier) { earlier_ = std::move(earlier); }
  void set_progress(std::shared_ptr<ProgressThread> progress) { progress_ = std::move(progress); }
  torii_received* received() noexcept { return &received_; }

  // For the threads that drive the work.
  bool has_ended() const noexcept { return has_ended_.load(std::memory_order_acquire); }
  bool has_one_peer() const noexcept { return operation_.calls.empty(); }  ///< is a send or a receive
  std::chrono::steady_clock::time_point started() const noexcept { return started_; }
  bool claim() noexcept;  ///< true: this thread drives it, until it ends or release()
  void release() noexcept { is_claimed_.store(false, std::memory_order_release); }
  // The next two return true if the work has ended now; then the caller completes the future.
  bool poll();                    ///< claimed: looks once
  bool wait_for(double seconds);  ///< claimed: waits for some seconds at the longest
  void cancel();                  ///< claimed: takes back a receive that has met no send
  /// The future of a work that has ended, once, if anybody has asked for one.
  c10::intrusive_ptr<c10::ivalue::Future> take_future();
  /// Runs the callbacks in this thread. They may start and wait for other operations, and drop the group.
  void complete(const c10::intrusive_ptr<c10::ivalue::Future>& future);

 private:
  void wait_claimed(std::chrono::milliseconds timeout);
  void wait_for_other(std::chrono::microseconds time);
  bool end_if_all_have();
  void note(torii_status status);
  /// The profiler's name without "torii:".
  const char* operation_name() const { return operation_.title + sizeof("torii"); }
  [[noreturn]] void throw_timeout();
  void complete_future();

  std::shared_ptr<Team> team_;
  std::shared_ptr<ProgressThread> progress_;
  Operation operation_;
  std::vector<torii_request*> requests_;
  std::vector<c10::intrusive_ptr<Work>> earlier_;
  torii_received received_ = {};
  std::exception_ptr error_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::atomic<bool> is_claimed_ = false;
  std::atomic<bool> has_ended_ = false;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  bool is_marked_ = false;
};

}  // namespace torii_torch
