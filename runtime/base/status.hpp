// SPDX-License-Identifier: Apache-2.0
// Status codes shared by C, C++ and JSON, and the exception that setup code throws.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace torii {

/// The outcome of every call. The numbers are part of the C ABI (include/torii/torii.h) and never change.
enum class [[nodiscard]] Status : std::int32_t{
    ok = 0,      invalid_argument = 1, not_registered = 2, mismatch = 3, unsupported = 4, no_resource = 5,
    timeout = 6, peer_lost = 7,        aborted = 8,        poisoned = 9, transport = 10,  internal = 11,
};

/// The name of a status in logs and JSON, e.g. "peer_lost".
std::string_view name(Status status) noexcept;

/// Thrown by setup code only; the data path returns a Status instead. `rank()` is the rank the message speaks of, or
/// -1.
class Error : public std::runtime_error {
 public:
  Error(Status status, const std::string& message, int rank = -1)
      : std::runtime_error(message), status_(status), rank_(rank) {}
  Status status() const noexcept { return status_; }
  int rank() const noexcept { return rank_; }

 private:
  Status status_;
  int rank_;
};

/// Throws Error{invalid_argument}.
[[noreturn]] void invalid(const std::string& text);

}  // namespace torii
