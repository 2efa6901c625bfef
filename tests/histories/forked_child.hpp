// SPDX-License-Identifier: Apache-2.0
// A child of this process that calls the library, which must refuse it at once, and then ends or lives on.
#pragma once

#include <torii/torii.h>

#include <sys/types.h>

namespace torii::tests {

/// Forked while threads of other ranks may be inside the library. Its end ends the child.
class ForkedChild {
 public:
  ForkedChild(torii_context* context, torii_team* team, bool lives_on);
  ~ForkedChild();
  ForkedChild(const ForkedChild&) = delete;
  ForkedChild& operator=(const ForkedChild&) = delete;

  /// False if a call was not refused in the child, or did not come back within some seconds.
  bool was_refused() const noexcept { return was_refused_; }

 private:
  pid_t pid_;
  bool was_refused_ = false;
};

}  // namespace torii::tests
