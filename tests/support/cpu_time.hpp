// SPDX-License-Identifier: Apache-2.0
// CPU time of this process: what a test may set a bound for, since other programs on the machine do not matter to it.
#pragma once

#include <ctime>

namespace torii::tests {

inline double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// The same work may take so many times longer than in a release build.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr double kSlower = 4;
#else
inline constexpr double kSlower = 1;
#endif

}  // namespace torii::tests
