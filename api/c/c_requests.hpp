// SPDX-License-Identifier: Apache-2.0
// Common parts of the functions for one request and of those for lists of requests.
#pragma once

#include "api/c/c_objects.hpp"

namespace torii::c {

/// Started, and no test or wait has told its end yet.
inline bool is_active(const torii_request* request) { return request != nullptr && request->active; }

inline bool is_forked(const torii_request* request) { return request->owner->context->context.is_forked_child(); }

inline void drop(torii_request*& request) {
  torii_team* const owner = request->owner;
  delete request;
  request = nullptr;
  leave(owner);
}

/// The request has ended: returns its status, and drops it unless it can be started again.
inline torii_status finish(torii_request*& request) {
  Team& team = *request->owner->team;
  const Status status = request->request.status;
  if (status == Status::ok && request->pair) tell_received(request->pair->call, request->pair->received);
  if (status != Status::ok) team.tell_cause();
  request->active = false;
  if (!request->request.persistent) drop(request);
  return to_c(status);
}

}  // namespace torii::c
