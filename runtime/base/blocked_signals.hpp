// SPDX-License-Identifier: Apache-2.0
// Keeps the program's signals away from threads that the library or its libraries start.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace torii {

/// Blocks all signals of the calling thread. Threads made meanwhile inherit the mask.
class BlockedSignals {
 public:
  BlockedSignals() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace torii
