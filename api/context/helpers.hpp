// SPDX-License-Identifier: Apache-2.0
// Helper threads: they move operations that callers have left in flight while these compute. None unless asked for by
// TORII_HELPERS.
#pragma once

#include <thread>
#include <vector>

namespace torii {

class Background;

/// Threads that run for the context's life: asleep while no operation is in flight. They block all signals, so the
/// program's handlers never run on them.
class Helpers {
 public:
  /// Throws Error{no_resource} when a thread cannot be made.
  Helpers(Background& background, int count);
  /// Ends and joins the threads; operations in flight stay where they are.
  ~Helpers();
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;

 private:
  std::vector<std::jthread> threads_;
};

}  // namespace torii
