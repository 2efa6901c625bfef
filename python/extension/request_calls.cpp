// SPDX-License-Identifier: Apache-2.0
// Requests of the C interface.
#include "python/extension/request_calls.hpp"

#include <algorithm>

namespace torii_python {

torii_status run_operation(torii_team* team, const Operation& operation) {
  const torii_call& call = operation.call;
  const Pair& pair = operation.pair;
  if (!pair.is_there) return torii_run(team, &call);
  return pair.received == nullptr
             ? torii_send(team, call.input, call.count, call.type, pair.peer, pair.tag)
             : torii_recv(team, call.result, call.count, call.type, pair.peer, pair.tag, pair.received);
}

torii_status start_request(torii_team* team, const Operation& operation, Handle& handle) {
  const torii_call& call = operation.call;
  const Pair& pair = operation.pair;
  if (handle.is_persistent) return torii_prepare(team, &call, &handle.request);
  if (!pair.is_there) return torii_start(team, &call, &handle.request);
  if (pair.received == nullptr) {
    return torii_start_send(team, call.input, call.count, call.type, pair.peer, pair.tag, &handle.request);
  }
  return torii_start_recv(team, call.result, call.count, call.type, pair.peer, pair.tag, pair.received,
                          &handle.request);
}

torii_status restart_request(Handle& handle) { return torii_restart(handle.request); }

torii_status test_request(Handle& handle, bool& done) {
  int is_done = 0;
  const torii_status status = torii_test(&handle.request, &is_done);
  done = is_done != 0;
  return status;
}

torii_status wait_request(Handle& handle, double seconds, Blocking& blocking, bool& done) {
  done = true;
  if (seconds < 0) return torii_wait(&handle.request);
  // In parts, so that signal handlers run.
  constexpr double kPartSeconds = 0.05;
  using Seconds = std::chrono::duration<double>;
  const auto end = Blocking::Clock::now() + Seconds(std::min(seconds, 1e6));
  for (;;) {
    const double left = std::max(0.0, Seconds(end - Blocking::Clock::now()).count());
    int is_done = 0;
    const torii_status status = torii_wait_for(&handle.request, std::min(left, kPartSeconds), &is_done);
    done = is_done != 0;
    if (done || status != TORII_OK || blocking.check_signals() || left <= kPartSeconds) return status;
  }
}

torii_status cancel_request(Handle& handle, bool& cancelled) {
  int is_cancelled = 0;
  const torii_status status = torii_request_cancel(&handle.request, &is_cancelled);
  cancelled = is_cancelled != 0;
  return status;
}

torii_status free_request(Handle& handle) { return torii_request_free(&handle.request); }

}  // namespace torii_python
