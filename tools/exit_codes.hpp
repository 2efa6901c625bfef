// SPDX-License-Identifier: Apache-2.0
// The exit codes of programs.
#pragma once

#include <cstdio>
#include <exception>

#include "runtime/base/output.hpp"
#include "runtime/base/status.hpp"

namespace torii::tools {

/// Exit codes of every program of the project.
enum ExitCode : int {
  kDone = 0,
  kWrong = 1,        ///< wrong data or a failed check
  kBadInput = 2,     ///< bad command line or input
  kNotPossible = 3,  ///< not possible here; the reason is printed
  kTimedOut = 4,
  kPeerLost = 5,
};

inline ExitCode exit_code(Status status) {
  switch (status) {
    case Status::invalid_argument:
      return kBadInput;
    case Status::unsupported:
    case Status::no_resource:
      return kNotPossible;
    case Status::timeout:
      return kTimedOut;
    default:
      return kWrong;
  }
}

/// Runs the work of a program and returns its exit code. Exceptions become a message on stderr, and so does output that
/// cannot be written: results that are lost are no success.
template <class Work>
int run_program(const char* program, const Work& work) {
  int code = kDone;
  try {
    code = work();
    Output("-").write("");
    return code;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s\n", program, error.what());
    return code == kDone ? exit_code(error.status()) : code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program, error.what());
    return kWrong;
  }
}

}  // namespace torii::tools
