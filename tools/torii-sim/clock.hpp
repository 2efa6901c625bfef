// SPDX-License-Identifier: Apache-2.0
// How long the program itself takes.
#pragma once

#include <chrono>

namespace torii::tools {

using Clock = std::chrono::steady_clock;
inline double seconds_since(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

}  // namespace torii::tools
