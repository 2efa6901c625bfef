// SPDX-License-Identifier: Apache-2.0
// Requests of C callers: started, prepared, tested and waited for. c_request_lists.cpp has those for lists.
#include "api/c/c_requests.hpp"

#include <torii/torii.h>

#include <algorithm>
#include <string>

#include "api/c/c_objects.hpp"
#include "api/c/c_structs.hpp"
#include "runtime/base/cancellation.hpp"

using torii::Status;
using torii::c::answered;
using torii::c::drop;
using torii::c::finish;
using torii::c::invalid;
using torii::c::is_active;
using torii::c::is_forked;
using torii::c::read_call;
using torii::c::refused_on;
using torii::c::to_c;

namespace {

torii_status make_request(torii_team* team, const torii_call* call, torii_request** request) {
  if (team == nullptr) return invalid("team is NULL");
  if (request == nullptr) return refused_on(team, invalid("the place for the request is NULL"));
  *request = nullptr;
  torii_status status = answered([&] { *request = new torii_request{team, {}}; });
  if (status != TORII_OK) return refused_on(team, status);
  ++team->users;
  (*request)->request.is_started = true;
  if (read_call(team, call, (*request)->request.call, status)) return TORII_OK;
  drop(*request);
  return refused_on(team, status);
}

torii_status drop_refused(torii_request** request, Status status) {
  (void)(*request)->owner->team->operations().close_channel((*request)->request);
  drop(*request);
  return to_c(status);
}

/// Answers a test or a wait for a moment.
torii_status answer(torii::HasEnded has_ended, torii_request** request, int* done) {
  if (has_ended == torii::HasEnded::yes) return finish(*request);
  *done = 0;
  return has_ended == torii::HasEnded::no ? TORII_OK : TORII_INVALID_ARGUMENT;
}

}  // namespace

extern "C" {

torii_status torii_start(torii_team* team, const torii_call* call, torii_request** request) {
  const torii_status made = make_request(team, call, request);
  if (made != TORII_OK) return made;
  const Status status = team->team->operations().submit((*request)->request);
  if (status != Status::ok) return drop_refused(request, status);
  (*request)->active = true;
  return TORII_OK;
}

torii_status torii_prepare(torii_team* team, const torii_call* call, torii_request** request) {
  const torii_status made = make_request(team, call, request);
  if (made != TORII_OK) return made;
  (*request)->request.persistent = true;
  const Status status = team->team->operations().open_channel((*request)->request);
  return status == Status::ok ? TORII_OK : drop_refused(request, status);
}

torii_status torii_restart(torii_request* request) {
  if (request == nullptr) return invalid("request is NULL");
  if (request->owner->is_destroyed) return invalid("the team of the request has been destroyed: free the request");
  if (!request->request.persistent) {
    return refused_on(request->owner, invalid("the request is not persistent: it was made by torii_start"));
  }
  if (request->active) {
    const torii::Hold hold = request->owner->team->operations().waits().hold();
    if (hold.refusal() != Status::ok) return to_c(hold.refusal());
    ++request->request.starts_refused;
    return refused_on(request->owner, invalid("the request is active: wait for it before it is started again"));
  }
  const Status status = request->owner->team->operations().submit(request->request);
  if (status != Status::ok) return to_c(status);
  request->active = true;
  return TORII_OK;
}

torii_status torii_test(torii_request** request, int* done) {
  if (request == nullptr || done == nullptr) return invalid("request or the place for the answer is NULL");
  *done = 1;
  if (!is_active(*request)) return TORII_OK;
  return answer((*request)->owner->team->operations().waits().test((*request)->request), request, done);
}

torii_status torii_wait(torii_request** request) {
  if (request == nullptr) return invalid("request is NULL");
  if (!is_active(*request)) return TORII_OK;
  const Status status = (*request)->owner->team->operations().waits().wait((*request)->request);
  return status == Status::ok ? finish(*request) : to_c(status);
}

torii_status torii_wait_for(torii_request** request, double seconds, int* done) {
  if (request == nullptr || done == nullptr) return invalid("request or the place for the answer is NULL");
  if (!(seconds >= 0)) return invalid("seconds is " + std::to_string(seconds) + "; it must be 0 or more");
  *done = 1;
  if (!is_active(*request)) return TORII_OK;
  const auto most_ns = static_cast<std::int64_t>(std::min(seconds, 1e9) * 1e9);
  return answer((*request)->owner->team->operations().waits().wait((*request)->request, most_ns), request, done);
}

torii_status torii_progress(torii_context* context, int* moved) {
  if (context == nullptr) return invalid("context is NULL");
  if (moved != nullptr) *moved = 0;
  if (context->context.is_forked_child()) return invalid(torii::c::kForked);
  const torii::CancellationHeld held;
  const bool has_moved = context->context.background().progress(nullptr);
  if (moved != nullptr) *moved = has_moved ? 1 : 0;
  return TORII_OK;
}

torii_status torii_request_on_done(torii_request* request, torii_done_function done, void* data) {
  if (request == nullptr || done == nullptr) return invalid("request or the function is NULL");
  if (!request->active) return invalid("the request is not running: start it first");
  if (is_forked(request)) return invalid(torii::c::kForked);
  return to_c(request->owner->team->operations().call_when_done(request->request, done, data));
}

int torii_context_event_fd(torii_context* context) {
  int descriptor = -1;
  if (context == nullptr) {
    (void)invalid("context is NULL");
  } else if (context->context.is_forked_child()) {
    (void)invalid(torii::c::kForked);
  } else {
    (void)answered([&] { descriptor = context->context.end_event().descriptor(); });
  }
  return descriptor;
}

torii_status torii_request_free(torii_request** request) {
  if (request == nullptr || *request == nullptr) return TORII_OK;
  if ((*request)->active) return invalid("the request is active: wait for it first");
  const Status status = (*request)->owner->team->operations().close_channel((*request)->request);
  if (status != Status::ok) return to_c(status);
  drop(*request);
  return TORII_OK;
}

}  // extern "C"
