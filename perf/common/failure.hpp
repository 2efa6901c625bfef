// SPDX-License-Identifier: Apache-2.0
// The one way in which a perf binary ends early: a message for stderr and an exit code that scripts can rely on.
#pragma once

#include <torii/torii.h>

#include <exception>
#include <stdexcept>
#include <string>

#include "runtime/base/output.hpp"

namespace torii::perf {

enum ExitCode : int {
  kOk = 0,
  kWrongData = 1,
  kBadCommandLine = 2,
  kNotPossible = 3,
  kTimeout = 4,
  kPeerLost = 5,
};

class Failure : public std::runtime_error {
 public:
  Failure(int exit_code, const std::string& message) : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

/// The exit code of a program that `error` ends: that of a Failure, and for an Error, which says what a program cannot
/// write, that of a bad command line.
inline int exit_code_of(const std::exception& error) {
  if (const auto* const failure = dynamic_cast<const Failure*>(&error)) return failure->exit_code();
  return dynamic_cast<const Error*>(&error) != nullptr ? kBadCommandLine : kNotPossible;
}

/// Throws a Failure with the library's reason unless `status` is TORII_OK; `what` says what was tried.
inline void check(torii_status status, const std::string& what) {
  if (status == TORII_OK) return;
  int code = kWrongData;
  switch (status) {
    case TORII_INVALID_ARGUMENT:
      code = kBadCommandLine;
      break;
    case TORII_UNSUPPORTED:
    case TORII_NO_RESOURCE:
      code = kNotPossible;
      break;
    case TORII_TIMEOUT:
      code = kTimeout;
      break;
    case TORII_PEER_LOST:
      code = kPeerLost;
      break;
    default:
      break;
  }
  throw Failure(code, what + ": " + torii_status_name(status) + ": " + torii_last_error());
}

}  // namespace torii::perf
