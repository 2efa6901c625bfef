// SPDX-License-Identifier: Apache-2.0
// Failures and requests of the C++ interface. Included by torii.hpp.
#pragma once

#include <torii/torii.h>

#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace torii {
// Inside, the library has classes of the same names. In a namespace of their own these are others, and one program may
// hold both.
inline namespace cpp {

/// The exception that setup throws. what() is torii_last_error().
class Failure : public std::runtime_error {
 public:
  explicit Failure(torii_status status)
      : std::runtime_error(std::string(torii_status_name(status)) + ": " + torii_last_error()), status_(status) {}
  torii_status status() const noexcept { return status_; }

 private:
  torii_status status_;
};

inline void check(torii_status status) {
  if (status != TORII_OK) throw Failure(status);
}

/// A context, its teams, buffers, regions and containers share it: the last one to go takes it along.
using SharedContext = std::shared_ptr<torii_context>;
/// For objects over a context that somebody else destroys, after them.
inline SharedContext borrowed(torii_context* context) { return {SharedContext(), context}; }

/// A non-blocking or persistent operation; its buffers must live until it has ended. One that is moved from, or made
/// without a handle, has ended. The destructor waits for the end, up to the team's deadline: call wait() before, where
/// that matters.
class Request {
 public:
  Request() = default;
  explicit Request(torii_request* handle) : handle_(handle) {}
  Request(Request&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), on_done_(std::move(other.on_done_)) {}
  Request& operator=(Request&& other) noexcept {
    if (this == &other) return *this;
    end();
    handle_ = std::exchange(other.handle_, nullptr);
    on_done_ = std::move(other.on_done_);
    return *this;
  }
  ~Request() { end(); }
  explicit operator bool() const noexcept { return handle_ != nullptr; }
  /// For persistent operations.
  [[nodiscard]] torii_status restart() noexcept { return torii_restart(handle_); }
  [[nodiscard]] torii_status wait() noexcept { return torii_wait(&handle_); }
  /// Waits for `seconds` at the longest. True when the operation has ended; `status` then tells how. If it has not,
  /// torii_last_error() says what it waits for.
  bool wait_for(double seconds, torii_status& status) noexcept {
    int done = 0;
    status = torii_wait_for(&handle_, seconds, &done);
    return done != 0;
  }
  /// Takes a started receive back. True if it had met no send.
  bool cancel() noexcept {
    int cancelled = 0;
    (void)torii_request_cancel(&handle_, &cancelled);
    return cancelled != 0;
  }
  /// True when the operation has ended; `status` then tells how.
  bool test(torii_status& status) noexcept {
    int done = 0;
    status = torii_test(&handle_, &done);
    return done != 0;
  }
  /// Calls `done(status)` once when the running operation ends: by the thread that finds it ended, or now if it has. A
  /// persistent operation needs it again after each restart. `done` must not call torii, throw, or wait. A second one
  /// replaces the first.
  template <typename Done>
  [[nodiscard]] torii_status on_done(Done&& done) {
    using Kept = std::decay_t<Done>;
    static_assert(std::is_invocable_v<Kept&, torii_status>, "on_done takes what can be called with a torii_status");
    auto kept = std::make_shared<Kept>(std::forward<Done>(done));
    const torii_status status = torii_request_on_done(
        handle_, [](torii_status end, void* data) noexcept { (*static_cast<Kept*>(data))(end); }, kept.get());
    // The one before is no longer called, and may go.
    if (status == TORII_OK) on_done_ = std::move(kept);
    return status;
  }

 private:
  friend class RequestList;
  void end() noexcept {
    (void)torii_wait(&handle_);
    (void)torii_request_free(&handle_);
  }
  torii_request* handle_ = nullptr;
  std::shared_ptr<void> on_done_;  ///< lives as long as it may be called
};

/// The handles of several requests in one array, as the C functions take them. The requests get them back.
class RequestList {
 public:
  explicit RequestList(std::span<Request> requests) : requests_(requests), handles_(requests.size()) {
    for (std::size_t i = 0; i < requests.size(); ++i) handles_[i] = requests[i].handle_;
  }
  RequestList(const RequestList&) = delete;
  RequestList& operator=(const RequestList&) = delete;
  ~RequestList() {
    for (std::size_t i = 0; i < requests_.size(); ++i) requests_[i].handle_ = handles_[i];
  }
  torii_request** data() noexcept { return handles_.data(); }
  int size() const noexcept { return static_cast<int>(handles_.size()); }

 private:
  std::span<Request> requests_;
  std::vector<torii_request*> handles_;
};

// Several requests, of one context. They throw std::bad_alloc before anything has happened, and nothing else.

/// The place of a request that has ended, and its status; -1 if none has.
inline int test_any(std::span<Request> requests, torii_status& status) {
  RequestList list(requests);
  int index = -1;
  status = torii_test_any(list.data(), list.size(), &index);
  return index;
}
/// Waits until one has ended; -1 if none is running.
inline int wait_any(std::span<Request> requests, torii_status& status) {
  RequestList list(requests);
  int index = -1;
  status = torii_wait_any(list.data(), list.size(), &index);
  return index;
}
/// True when all have ended; `status` is then the first one that is not TORII_OK.
inline bool test_all(std::span<Request> requests, torii_status& status) {
  RequestList list(requests);
  int done = 0;
  status = torii_test_all(list.data(), list.size(), &done);
  return done != 0;
}
[[nodiscard]] inline torii_status wait_all(std::span<Request> requests) {
  RequestList list(requests);
  return torii_wait_all(list.data(), list.size());
}
/// One that has ended, of a list.
struct Ended {
  int index;
  torii_status status;
};
/// Waits until at least one has ended. All that have, in the order of the list; none if none is running. Throws Failure
/// for a list that cannot be waited for.
inline std::vector<Ended> wait_some(std::span<Request> requests) {
  std::vector<int> indices(requests.size() + 1);
  std::vector<torii_status> statuses(requests.size() + 1);
  std::vector<Ended> ended;
  ended.reserve(requests.size());
  RequestList list(requests);
  int done = 0;
  const torii_status status = torii_wait_some(list.data(), list.size(), indices.data(), statuses.data(), &done);
  if (done == 0) check(status);
  for (int i = 0; i < done; ++i) {
    ended.push_back({indices[static_cast<std::size_t>(i)], statuses[static_cast<std::size_t>(i)]});
  }
  return ended;
}

}  // namespace cpp
}  // namespace torii
