// SPDX-License-Identifier: Apache-2.0
// Sends and receives.
#include "api/c/c_pairs.hpp"

#include <torii/torii.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "api/c/c_groups.hpp"
#include "api/c/c_objects.hpp"
#include "api/c/c_requests.hpp"

using torii::PairCall;
using torii::Status;
using torii::c::answered;
using torii::c::drop;
using torii::c::invalid;
using torii::c::is_active;
using torii::c::is_forked;
using torii::c::to_c;

namespace {

PairCall pair_call(bool sends, const void* data, std::size_t count, torii_type type, int peer, int tag) {
  PairCall call;
  call.sends = sends;
  call.data = data;
  call.count = count;
  call.type = static_cast<torii::Type>(type);
  call.peer = peer;
  call.tag = tag;
  return call;
}

torii_status check(torii_team* team, torii_type type, const torii_received* received) {
  if (team == nullptr) return invalid("team is NULL");
  if (!torii::c::is_from_0_to(type, TORII_FLOAT8_E5M2)) {
    return invalid("type is " + std::to_string(type) + "; sends and receives have types 0 to " +
                   std::to_string(TORII_FLOAT8_E5M2));
  }
  if (received != nullptr && received->size < sizeof(received->size)) {
    return invalid("received->size is " + std::to_string(received->size) + "; set it to sizeof(torii_received)");
  }
  return TORII_OK;
}

torii_status start(torii_team* team, const PairCall& call, torii_received* received, torii_request** request) {
  if (request == nullptr) return invalid("the place for the request is NULL");
  *request = nullptr;
  const torii_status made = answered([&] {
    auto fresh = std::make_unique<torii_request>();
    fresh->owner = team;
    fresh->pair = {call, received};
    fresh->request.pair = &fresh->pair->call;
    fresh->request.is_started = true;
    *request = fresh.release();
    ++team->users;
  });
  if (made != TORII_OK) return made;
  const Status status = team->team->operations().submit((*request)->request);
  if (status != Status::ok) {
    drop(*request);
    return to_c(status);
  }
  (*request)->active = true;
  return TORII_OK;
}

/// In a group the call only starts, or ends if it can do so now.
torii_status run(torii_team* team, PairCall&& call, torii_received* received) {
  const bool is_in_group = torii::c::is_in_group(team);
  bool has_ended = false;
  torii::Operations& operations = team->team->operations();
  const Status tried = operations.run_at_once(call, is_in_group ? 1 : torii::kQuickPolls, has_ended);
  if (has_ended) torii::c::tell_received(call, received);
  if (has_ended || tried != Status::ok) return to_c(tried);
  if (is_in_group) {
    // Room first: what has started must not be lost.
    const auto requests = [&]() -> std::vector<torii_request*>& { return torii::c::group_of(team)->requests; };
    const torii_status has_room = answered([&] { requests().push_back(nullptr); });
    if (has_room != TORII_OK) return has_room;
    torii_request* request = nullptr;
    const torii_status status = start(team, call, received, &request);
    // Other ranks on this thread, in a simulation, may have moved the list of groups.
    requests().back() = request;
    if (status != TORII_OK) requests().pop_back();
    return status;
  }
  torii::Request request;
  request.pair = &call;
  const Status status = operations.run(request);
  if (status == Status::ok) torii::c::tell_received(call, received);
  return to_c(status);
}

}  // namespace

namespace torii::c {

void tell_received(const PairCall& call, torii_received* received) {
  if (call.sends || received == nullptr) return;
  const Envelope& envelope = call.receive().envelope;
  const torii_received told = {received->size, envelope.from, envelope.tag, envelope.bytes / size_of(call.type)};
  std::memcpy(received, &told, std::min(received->size, sizeof(told)));
}

}  // namespace torii::c

extern "C" {

torii_status torii_send(torii_team* team, const void* buffer, size_t count, torii_type type, int to, int tag) {
  const torii_status checked = check(team, type, nullptr);
  return checked != TORII_OK ? checked : run(team, pair_call(true, buffer, count, type, to, tag), nullptr);
}

torii_status torii_recv(torii_team* team, void* buffer, size_t count, torii_type type, int from, int tag,
                        torii_received* received) {
  const torii_status checked = check(team, type, received);
  return checked != TORII_OK ? checked : run(team, pair_call(false, buffer, count, type, from, tag), received);
}

torii_status torii_start_send(torii_team* team, const void* buffer, size_t count, torii_type type, int to, int tag,
                              torii_request** request) {
  const torii_status checked = check(team, type, nullptr);
  return checked != TORII_OK ? checked : start(team, pair_call(true, buffer, count, type, to, tag), nullptr, request);
}

torii_status torii_start_recv(torii_team* team, void* buffer, size_t count, torii_type type, int from, int tag,
                              torii_received* received, torii_request** request) {
  const torii_status checked = check(team, type, received);
  return checked != TORII_OK ? checked
                             : start(team, pair_call(false, buffer, count, type, from, tag), received, request);
}

torii_status torii_request_cancel(torii_request** request, int* cancelled) {
  if (request == nullptr || cancelled == nullptr) return invalid("request or the place for the answer is NULL");
  *cancelled = 0;
  if (*request == nullptr || !(*request)->pair || (*request)->pair->call.sends) {
    return invalid("only a started receive can be cancelled");
  }
  if (is_forked(*request)) return invalid(torii::c::kForked);
  torii::Team& team = *(*request)->owner->team;
  if (!is_active(*request)) return TORII_OK;
  bool is_cancelled = false;
  if (const Status status = team.operations().cancel((*request)->request, is_cancelled); status != Status::ok)
    return to_c(status);
  if (!is_cancelled) return TORII_OK;
  team.wait_to_end((*request)->request);  // it has ended, and maybe nothing is left for the background
  *cancelled = 1;
  drop(*request);
  return TORII_OK;
}

}  // extern "C"
