// SPDX-License-Identifier: Apache-2.0
// Threads that move the parts of a simulation on from one window of time to the next.
#pragma once

#include <atomic>
#include <barrier>
#include <thread>
#include <utility>
#include <vector>

namespace torii::simulated {

/// For each window calls `run(part)` for all parts, each on one of the threads, then `next()` on one of them. Ends when
/// next() returns false. Neither may throw. The calling thread is one of `threads`.
template <class RunPart, class Next>
void run_windows(int parts, int threads, RunPart&& run, Next&& next) {
  std::atomic<int> taken = 0;
  bool goes_on = true;
  const auto close = [&]() noexcept {
    taken.store(0, std::memory_order_relaxed);
    goes_on = next();
  };
  std::barrier windows(threads, close);
  const auto work = [&] {
    while (goes_on) {
      for (int part = taken.fetch_add(1); part < parts; part = taken.fetch_add(1)) run(part);
      windows.arrive_and_wait();
    }
  };
  std::vector<std::jthread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(work);
  work();
}

}  // namespace torii::simulated
