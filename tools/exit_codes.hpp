// SPDX-License-Identifier: Apache-2.0
// How programs end. Apart from command_line.hpp, whose parser takes seconds to compile.
#pragma once

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

}  // namespace torii::tools
