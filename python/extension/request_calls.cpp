// SPDX-License-Identifier: Apache-2.0
// Requests of the C interface.
#include "python/extension/request_calls.hpp"

#include <algorithm>
#include <thread>

namespace torii_python {
namespace {

/// The library frees a started request when it tells that it has ended.
void ended(Handle& handle) {
  if (!handle.is_persistent) handle.request = nullptr;
}

}  // namespace

torii_status start_request(torii_team* team, const torii_call& call, Handle& handle) {
  return handle.is_persistent ? torii_prepare(team, &call, &handle.request) : torii_start(team, &call, &handle.request);
}

torii_status restart_request(Handle& handle) { return torii_restart(handle.request); }

torii_status test_request(Handle& handle, bool& done) {
  done = true;
  if (handle.request == nullptr) return TORII_OK;
  int is_done = 0;
  const torii_status status = torii_test(handle.request, &is_done);
  done = is_done != 0;
  if (done) ended(handle);
  return status;
}

torii_status wait_request(Handle& handle, double seconds, Blocking& blocking, bool& done) {
  done = true;
  if (handle.request == nullptr) return TORII_OK;
  if (seconds < 0) {
    const torii_status status = torii_wait(handle.request);
    ended(handle);
    return status;
  }
  // Polls at first, then sleeps longer and longer, up to 1 ms.
  constexpr int kPolls = 200;
  constexpr auto kSleepMost = std::chrono::microseconds(1000);
  const auto end = Blocking::Clock::now() + std::chrono::duration<double>(std::min(seconds, 1e6));
  auto sleep = std::chrono::microseconds(20);
  for (int polls = 0;; ++polls) {
    const torii_status status = test_request(handle, done);
    if (done || status != TORII_OK) return status;
    if (blocking.check_signals() || Blocking::Clock::now() >= end) return TORII_OK;
    if (polls < kPolls) continue;
    std::this_thread::sleep_for(sleep);
    sleep = std::min(2 * sleep, kSleepMost);
  }
}

torii_status free_request(Handle& handle) {
  const torii_status status = torii_request_free(handle.request);
  if (status == TORII_OK) handle.request = nullptr;
  return status;
}

}  // namespace torii_python
