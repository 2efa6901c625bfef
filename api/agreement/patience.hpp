// SPDX-License-Identifier: Apache-2.0
// How long members leave each other, beside the deadline.
#pragma once

#include <algorithm>
#include <cstdint>

namespace torii {

/// For waits in which nothing of this rank has to be done meanwhile.
inline bool stays_idle(void*) { return true; }

/// How long a member may take to pass on what a dead one has told it. Others who wait for the member that waits for
/// this have only the deadline, and several such waits may come one after the other.
inline std::int64_t pass_on_ns(std::int64_t timeout_ns) noexcept {
  constexpr std::int64_t kMostNs = 1'000'000'000;
  return std::min(kMostNs, timeout_ns / 4);
}

}  // namespace torii
