// SPDX-License-Identifier: Apache-2.0
// Requests of C callers: started, prepared, tested, waited for, alone and several at once.
#include <torii/torii.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "api/c/c_objects.hpp"
#include "api/c/c_requests.hpp"
#include "api/c/c_structs.hpp"

using torii::Status;
using torii::c::answered;
using torii::c::drop;
using torii::c::finish;
using torii::c::invalid;
using torii::c::is_active;
using torii::c::read_call;
using torii::c::refused_on;
using torii::c::to_c;

namespace {

torii_status make_request(torii_team* team, const torii_call* call, torii_request** request) {
  if (team == nullptr) return invalid("team is NULL");
  if (request == nullptr) return refused_on(team, invalid("the place for the request is NULL"));
  *request = nullptr;
  torii_status status = TORII_OK;
  torii::CallArguments arguments;
  if (!read_call(call, arguments, status)) return refused_on(team, status);
  status = answered([&] {
    *request = new torii_request{team, {}};
    (*request)->request.arguments = arguments;
    ++team->requests;
  });
  return status == TORII_OK ? status : refused_on(team, status);
}

torii_status drop_refused(torii_request** request, Status status) {
  (*request)->owner->team->close_channel((*request)->request);
  drop(*request);
  return to_c(status);
}

/// Whether [requests, requests + count) is a list; sets last_error() if not.
bool is_list(torii_request* const* requests, int count) {
  if (count >= 0 && (requests != nullptr || count == 0)) return true;
  torii::set_last_error("requests is " + std::string(requests == nullptr ? "NULL" : "a list") + " of " +
                        std::to_string(count) + "; give a list and its length");
  return false;
}

/// The first active request that has ended, from `first` on and round; -1: none.
int find_done(torii_request** requests, int count, int first) {
  for (int i = 0; i < count; ++i) {
    const int at = (first + i) % count;
    if (is_active(requests[at]) && requests[at]->owner->team->test(requests[at]->request)) return at;
  }
  return -1;
}

/// So often all requests are looked at in turn before this thread waits at one of them, a moment each.
constexpr int kRoundsOfTests = 100;
constexpr std::int64_t kMomentNs = 200'000;

/// Waits until an active request has ended, and returns its place; -1 if none is active.
int await_any(torii_request** requests, int count) {
  if (std::none_of(requests, requests + count, is_active)) return -1;
  int round = 0;
  for (int place = 0;; place = (place + 1) % count) {
    if (const int done = find_done(requests, count, place); done >= 0) return done;
    if (++round < kRoundsOfTests || !is_active(requests[place])) continue;
    (void)requests[place]->owner->team->wait(requests[place]->request, kMomentNs);
  }
}

}  // namespace

extern "C" {

torii_status torii_start(torii_team* team, const torii_call* call, torii_request** request) {
  const torii_status made = make_request(team, call, request);
  if (made != TORII_OK) return made;
  const Status status = team->team->submit((*request)->request);
  if (status != Status::ok) return drop_refused(request, status);
  (*request)->active = true;
  return answered([&] { team->team->enter_background(); });
}

torii_status torii_prepare(torii_team* team, const torii_call* call, torii_request** request) {
  const torii_status made = make_request(team, call, request);
  if (made != TORII_OK) return made;
  (*request)->request.persistent = true;
  const Status status = team->team->open_channel((*request)->request);
  return status == Status::ok ? TORII_OK : drop_refused(request, status);
}

torii_status torii_restart(torii_request* request) {
  if (request == nullptr) return invalid("request is NULL");
  if (!request->request.persistent) {
    return refused_on(request->owner, invalid("the request is not persistent: it was made by torii_start"));
  }
  if (request->active) {
    ++request->request.starts_refused;
    return refused_on(request->owner, invalid("the request is active: wait for it before it is started again"));
  }
  const Status status = request->owner->team->submit(request->request);
  if (status != Status::ok) return to_c(status);
  request->active = true;
  return answered([&] { request->owner->team->enter_background(); });
}

torii_status torii_test(torii_request** request, int* done) {
  if (request == nullptr || done == nullptr) return invalid("request or the place for the answer is NULL");
  *done = 1;
  if (!is_active(*request)) return TORII_OK;
  *done = (*request)->owner->team->test((*request)->request) ? 1 : 0;
  return *done != 0 ? finish(*request) : TORII_OK;
}

torii_status torii_wait(torii_request** request) {
  if (request == nullptr) return invalid("request is NULL");
  if (!is_active(*request)) return TORII_OK;
  (void)(*request)->owner->team->wait((*request)->request);
  return finish(*request);
}

torii_status torii_wait_for(torii_request** request, double seconds, int* done) {
  if (request == nullptr || done == nullptr) return invalid("request or the place for the answer is NULL");
  if (!(seconds >= 0)) return invalid("seconds is " + std::to_string(seconds) + "; it must be 0 or more");
  *done = 1;
  if (!is_active(*request)) return TORII_OK;
  const auto most_ns = static_cast<std::int64_t>(std::min(seconds, 1e9) * 1e9);
  *done = (*request)->owner->team->wait((*request)->request, most_ns) ? 1 : 0;
  return *done != 0 ? finish(*request) : TORII_OK;
}

torii_status torii_test_any(torii_request** requests, int count, int* index) {
  if (!is_list(requests, count)) return TORII_INVALID_ARGUMENT;
  if (index == nullptr) return invalid("the place for the index is NULL");
  *index = find_done(requests, count, 0);
  return *index >= 0 ? finish(requests[*index]) : TORII_OK;
}

torii_status torii_wait_any(torii_request** requests, int count, int* index) {
  if (!is_list(requests, count)) return TORII_INVALID_ARGUMENT;
  if (index == nullptr) return invalid("the place for the index is NULL");
  *index = await_any(requests, count);
  return *index >= 0 ? finish(requests[*index]) : TORII_OK;
}

torii_status torii_test_all(torii_request** requests, int count, int* done) {
  if (!is_list(requests, count)) return TORII_INVALID_ARGUMENT;
  if (done == nullptr) return invalid("the place for the answer is NULL");
  *done = 0;
  for (int i = 0; i < count; ++i) {
    if (is_active(requests[i]) && !requests[i]->owner->team->test(requests[i]->request)) return TORII_OK;
  }
  *done = 1;
  return torii_wait_all(requests, count);
}

torii_status torii_wait_all(torii_request** requests, int count) {
  if (!is_list(requests, count)) return TORII_INVALID_ARGUMENT;
  torii_status first = TORII_OK;
  std::string reason;
  for (int i = 0; i < count; ++i) {
    const torii_status status = torii_wait(&requests[i]);
    if (status == TORII_OK || first != TORII_OK) continue;
    first = status;
    (void)answered([&] { reason = torii_last_error(); });
  }
  if (first != TORII_OK) (void)answered([&] { torii::set_last_error(reason); });
  return first;
}

torii_status torii_wait_some(torii_request** requests, int count, int* indices, torii_status* statuses, int* done) {
  if (!is_list(requests, count)) return TORII_INVALID_ARGUMENT;
  if (indices == nullptr || done == nullptr) return invalid("the place for the indices or for their number is NULL");
  *done = 0;
  if (await_any(requests, count) < 0) return TORII_OK;
  torii_status first = TORII_OK;
  for (int i = 0; i < count; ++i) {
    if (!is_active(requests[i]) || !requests[i]->owner->team->test(requests[i]->request)) continue;
    const torii_status status = finish(requests[i]);
    if (first == TORII_OK) first = status;
    if (statuses != nullptr) statuses[*done] = status;
    indices[(*done)++] = i;
  }
  return first;
}

torii_status torii_progress(torii_context* context, int* moved) {
  if (context == nullptr) return invalid("context is NULL");
  const bool has_moved = context->context.background().progress(nullptr);
  if (moved != nullptr) *moved = has_moved ? 1 : 0;
  return TORII_OK;
}

torii_status torii_request_free(torii_request** request) {
  if (request == nullptr || *request == nullptr) return TORII_OK;
  if ((*request)->active) return invalid("the request is active: wait for it first");
  (*request)->owner->team->close_channel((*request)->request);
  drop(*request);
  return TORII_OK;
}

}  // extern "C"
