// SPDX-License-Identifier: Apache-2.0
// Driving requests, and telling PyTorch of their ends.
#include "plugins/pytorch/work.hpp"

#include <algorithm>

#include "plugins/pytorch/failure.hpp"
#include "plugins/pytorch/progress_thread.hpp"

namespace torii_torch {
namespace {

using Clock = std::chrono::steady_clock;

/// How long a wait with a time of its own stays in torii before it looks at the clock.
constexpr double kSliceSeconds = 0.01;
/// How long a wait leaves an operation to another thread before it tries to drive it again.
constexpr std::chrono::microseconds kOtherLooks{20};

}  // namespace

Work::Work(std::shared_ptr<Team> team, Operation operation)
    : c10d::Work(team->rank(), operation.type, operation.title, operation.inputs),
      team_(std::move(team)),
      operation_(std::move(operation)) {
  received_.size = sizeof(received_);
  received_.rank = -1;
}

// ---- starting

void Work::run() {
  for (const torii_call& call : operation_.calls) {
    const torii_status status = torii_run(team_->get(), &call);
    if (status != TORII_OK) note(status);
  }
  end(error_);
}

void Work::start() {
  for (const torii_call& call : operation_.calls) {
    torii_request* request = nullptr;
    const torii_status status = torii_start(team_->get(), &call, &request);
    if (status != TORII_OK) note(status);
    if (request != nullptr) requests_.push_back(request);
  }
  if (requests_.empty() && earlier_.empty()) end(error_);
}

void Work::start_send(const void* buffer, size_t count, torii_type elements, int to, int tag) {
  torii_request* request = nullptr;
  const torii_status status = torii_start_send(team_->get(), buffer, count, elements, to, tag, &request);
  if (status != TORII_OK) return end(status);
  requests_.push_back(request);
}

void Work::start_receive(void* buffer, size_t count, torii_type elements, int from, int tag) {
  torii_request* request = nullptr;
  const torii_status status = torii_start_recv(team_->get(), buffer, count, elements, from, tag, &received_, &request);
  if (status != TORII_OK) return end(status);
  requests_.push_back(request);
}

// ---- driving

bool Work::claim() noexcept {
  if (has_ended() || is_claimed_.exchange(true, std::memory_order_acquire)) return false;
  if (!has_ended()) return true;
  release();
  return false;
}

bool Work::poll() {
  for (torii_request*& request : requests_) {
    if (request == nullptr) continue;
    int done = 0;
    const torii_status status = torii_test(&request, &done);
    if (status != TORII_OK) note(status);
    if (status != TORII_OK && done == 0) request = nullptr;
  }
  return end_if_all_have();
}

bool Work::wait_for(double seconds) {
  const auto first = std::find_if(requests_.begin(), requests_.end(), [](auto* one) { return one != nullptr; });
  if (first != requests_.end()) {
    int done = 0;
    const torii_status status = torii_wait_for(&*first, seconds, &done);
    if (status != TORII_OK) note(status);
    if (status != TORII_OK && done == 0) *first = nullptr;
  } else {
    for (const auto& work : earlier_) {
      if (work->claim()) work->wait_for(seconds) ? work->complete_future() : work->release();
      if (!work->has_ended()) work->wait_for_other(kOtherLooks);
    }
  }
  return end_if_all_have();
}

void Work::cancel() {
  for (torii_request*& request : requests_) {
    int cancelled = 0;
    if (has_one_peer()) (void)torii_request_cancel(&request, &cancelled);
    if (cancelled != 0) error_ = make_failure(TORII_ABORTED, "torii: the group was destroyed");
  }
}

bool Work::end_if_all_have() {
  const bool have = std::all_of(requests_.begin(), requests_.end(), [](auto* one) { return one == nullptr; }) &&
                    std::all_of(earlier_.begin(), earlier_.end(), [](const auto& one) { return one->has_ended(); });
  if (have) end(error_);
  return have;
}

void Work::note(torii_status status) {
  if (error_ == nullptr) error_ = team_->failure(status, operation_name());
}

// ---- ending

void Work::end(torii_status status) {
  if (status != TORII_OK) note(status);
  end(error_);
}

void Work::end(std::exception_ptr error) {
  if (error == nullptr && operation_.finish) {
    try {
      operation_.finish();
    } catch (...) {
      error = std::current_exception();
    }
  }
  // Dropping a tensor may run Python: not while a lock is held.
  operation_.finish = nullptr;
  operation_.packed.clear();
  operation_.inputs.clear();
  earlier_.clear();
  finish(error);
  has_ended_.store(true, std::memory_order_release);
}

c10::intrusive_ptr<c10::ivalue::Future> Work::take_future() {
  const std::lock_guard lock(mutex_);
  if (!future_ || is_marked_) return {};
  is_marked_ = true;
  return future_;
}

void Work::complete(const c10::intrusive_ptr<c10::ivalue::Future>& future) {
  if (exception_ != nullptr) {
    future->setError(exception_);
  } else {
    future->markCompleted(c10::IValue(operation_.results));
  }
}

void Work::complete_future() {
  if (const auto future = take_future()) complete(future);
}

// ---- what PyTorch calls

bool Work::isCompleted() {
  if (has_ended()) return true;
  team_->check_owner();
  if (claim()) poll() ? complete_future() : release();
  return has_ended();
}

std::vector<at::Tensor> Work::result() {
  TORCH_CHECK(has_ended(), "torii: the operation has not ended; wait() comes before result()");
  return operation_.results;
}

int Work::sourceRank() const {
  TORCH_CHECK(has_ended() && received_.rank >= 0, "torii: only a receive that has ended has a source rank");
  return received_.rank;
}

bool Work::wait(std::chrono::milliseconds timeout) {
  if (!has_ended()) team_->check_owner();
  timeout = clamped(timeout);
  const auto until = Clock::now() + timeout;
  while (!has_ended()) {
    if (claim()) {
      wait_claimed(timeout);
    } else {
      // The progress thread looks at it, and lets go soon, or another caller waits for it.
      wait_for_other(kOtherLooks);
      if (timeout != kNoTimeout && Clock::now() >= until) throw_timeout();
    }
  }
  // Nobody writes it any more. The mutex may be locked for ever in a forked child.
  if (exception_ != nullptr) std::rethrow_exception(exception_);
  return true;
}

void Work::wait_claimed(std::chrono::milliseconds timeout) {
  if (timeout == kNoTimeout) {
    for (torii_request*& request : requests_) {
      const torii_status status = torii_wait(&request);
      if (status != TORII_OK) note(status);
      request = nullptr;
    }
  }
  const auto until = Clock::now() + timeout;
  while (!wait_for(kSliceSeconds)) {
    if (timeout != kNoTimeout && Clock::now() >= until) {
      release();
      throw_timeout();
    }
  }
  complete_future();
}

/// Waits for some time while another thread drives the operation.
void Work::wait_for_other(std::chrono::microseconds time) {
  std::unique_lock lock(mutex_);
  cv_.wait_for(lock, time, [this] { return completed_; });
}

void Work::throw_timeout() {
  throw_failure(TORII_TIMEOUT, std::string("Operation timed out! ") + operation_name() + " on rank " +
                                   std::to_string(team_->rank()) + " goes on; this wait has ended");
}

void Work::abort() {
  team_->check_owner();
  (void)torii_team_abort(team_->get(), "Work::abort()");
}

c10::intrusive_ptr<c10::ivalue::Future> Work::getFuture() {
  team_->check_owner();
  c10::intrusive_ptr<c10::ivalue::Future> future;
  bool must_mark = false;
  {
    const std::lock_guard lock(mutex_);
    if (!future_) future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    future = future_;
    must_mark = completed_ && !is_marked_;
    is_marked_ = is_marked_ || must_mark;
  }
  if (must_mark) {
    complete(future);
  } else if (progress_ && !has_ended()) {
    progress_->hurry();
  }
  return future;
}

}  // namespace torii_torch
