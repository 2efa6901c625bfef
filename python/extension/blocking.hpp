// SPDX-License-Identifier: Apache-2.0
// Calls that wait: other Python threads run meanwhile, and Python's signal handlers do.
#pragma once

#include <torii/torii.h>

#include <chrono>

#include "python/extension/python.hpp"

namespace torii_python {

/// While it exists, this thread does not hold the GIL. If a signal handler raises, `team` is aborted: an operation that
/// one rank has left cannot be completed by the others.
class Blocking {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Blocking(torii_team* team);
  ~Blocking();
  Blocking(const Blocking&) = delete;
  Blocking& operator=(const Blocking&) = delete;

  /// What a context calls while a thread waits in it (torii_context_options.idle).
  static void idle(void*);
  /// Lets signal handlers run if they have not for kSignalsEvery. Returns whether one has raised; the exception is set.
  bool check_signals();

 private:
  static constexpr auto kSignalsEvery = std::chrono::milliseconds(50);

  torii_team* team_;
  Blocking* outer_;
  PyThreadState* state_;
  Clock::time_point checked_;
  bool is_interrupted_ = false;
};

}  // namespace torii_python
