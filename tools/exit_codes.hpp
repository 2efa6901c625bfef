// SPDX-License-Identifier: Apache-2.0
// The exit codes of programs. Separate from command_line.hpp, whose parser takes seconds to compile.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>

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

/// The code with which a program ends that has done its work with `code`: another one if its output to stdout was lost.
inline int finish(const char* program, int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fprintf(stderr, "%s: cannot write stdout: %s\n", program, std::strerror(errno));
  return code == kDone ? kBadInput : code;
}

}  // namespace torii::tools
