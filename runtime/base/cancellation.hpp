// SPDX-License-Identifier: Apache-2.0
// Calls of this library are no cancellation points: a thread that pthread_cancel() meets in one ends after it.
#pragma once

#include <pthread.h>

namespace torii {

/// Holds cancellation of the calling thread back while it lives. System calls such as poll() end a cancelled thread
/// from within, by an exception. That exception passes through functions which are noexcept, and so ends the process.
/// And a rank that left a call half-way would leave its peers waiting. Holding it back costs some 20 ns. On one node a
/// call is mostly loads and stores. There only the parts that make system calls (preparing, putting in place, waiting,
/// failing) hold it back.
class CancellationHeld {
 public:
  explicit CancellationHeld(bool is_needed = true) noexcept : is_needed_(is_needed) {
    if (is_needed_) pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_);
  }
  ~CancellationHeld() {
    if (is_needed_) pthread_setcancelstate(before_, nullptr);
  }
  CancellationHeld(const CancellationHeld&) = delete;
  CancellationHeld& operator=(const CancellationHeld&) = delete;

 private:
  bool is_needed_;
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace torii
