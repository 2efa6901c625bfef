// SPDX-License-Identifier: Apache-2.0
// Starts and runs progress threads.
#include "api/context/progress_threads.hpp"

#include <pthread.h>
#include <sched.h>

#include <chrono>
#include <string>
#include <system_error>

#include "api/context/background.hpp"
#include "runtime/base/blocked_signals.hpp"
#include "runtime/base/status.hpp"

namespace torii {
namespace {

/// A progress thread without work first yields its CPU this often, then naps: the caller's computation comes first.
constexpr int kIdleYields = 100;
constexpr std::chrono::microseconds kNap{50};

void run(const std::stop_token& stop, Background& background) {
  int idle = 0;
  while (!stop.stop_requested()) {
    if (!background.wait(stop)) continue;
    if (background.progress(nullptr)) {
      idle = 0;
    } else if (++idle < kIdleYields) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(kNap);
    }
  }
}

}  // namespace

ProgressThreads::ProgressThreads(Background& background, int count) {
  const BlockedSignals blocked;
  try {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([&background](const std::stop_token& stop) { run(stop, background); });
      pthread_setname_np(threads_.back().native_handle(), "torii-helper");
    }
  } catch (const std::system_error& error) {
    throw Error(Status::no_resource, "cannot start progress thread " + std::to_string(threads_.size() + 1) + " of " +
                                         std::to_string(count) + " (TORII_HELPERS): " + error.what());
  }
}

ProgressThreads::~ProgressThreads() {
  for (std::jthread& thread : threads_) thread.request_stop();
}

}  // namespace torii
