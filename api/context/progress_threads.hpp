// SPDX-License-Identifier: Apache-2.0
// Progress threads: they move operations that callers have left in flight while these compute. None unless asked for by
// TORII_HELPERS.
#pragma once

#include <thread>
#include <vector>

namespace torii {

class Background;

/// Threads that run for the context's life: asleep while no operation is in flight. They block all signals, so the
/// program's handlers never run on them.
class ProgressThreads {
 public:
  /// Throws Error{no_resource} when a thread cannot be made.
  ProgressThreads(Background& background, int count);
  /// Ends and joins the threads; operations in flight stay where they are.
  ~ProgressThreads();
  ProgressThreads(const ProgressThreads&) = delete;
  ProgressThreads& operator=(const ProgressThreads&) = delete;

 private:
  std::vector<std::jthread> threads_;
};

}  // namespace torii
