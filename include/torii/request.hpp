// SPDX-License-Identifier: Apache-2.0
// Failures and requests of the C++ interface. Included by torii.hpp.
#pragma once

#include <torii/torii.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace torii {
// Inside, the library has classes of the same names. In a namespace of their own these are others, and one program may
// hold both.
inline namespace cpp {

/// What setup throws. what() is torii_last_error().
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

/// A non-blocking or persistent operation; its buffers must live until it has ended. One that is moved from, or made
/// without a handle, has ended. The destructor waits for the end, up to the team's deadline: call wait() before, where
/// that matters.
class Request {
 public:
  Request() = default;
  explicit Request(torii_request* handle) : handle_(handle) {}
  Request(Request&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Request& operator=(Request&& other) noexcept {
    if (this == &other) return *this;
    end();
    handle_ = std::exchange(other.handle_, nullptr);
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

 private:
  void end() noexcept {
    (void)torii_wait(&handle_);
    (void)torii_request_free(&handle_);
  }
  torii_request* handle_ = nullptr;
};

}  // namespace cpp
}  // namespace torii
