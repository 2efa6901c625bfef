// SPDX-License-Identifier: Apache-2.0
// Lists of requests of C callers: any, some or all of them are tested or waited for.
#include <torii/torii.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "api/c/c_requests.hpp"
#include "runtime/base/cancellation.hpp"
#include "runtime/base/tuned_constants.hpp"
#include "runtime/fabric/waiting.hpp"

using torii::Status;
using torii::c::answered;
using torii::c::finish;
using torii::c::invalid;
using torii::c::is_active;
using torii::c::is_forked;
using torii::c::to_c;

namespace {

using Requests = std::span<torii_request*>;

/// Reads a list of the caller. Its active requests have to be of one context, on whose memory a wait sleeps, and of
/// teams that the caller may use now.
torii_status read_list(torii_request** requests, int count, Requests& list) {
  if (count < 0) return invalid("count is " + std::to_string(count) + "; it must be 0 or more");
  if (requests == nullptr && count != 0) return invalid("requests is NULL, but count is " + std::to_string(count));
  list = Requests(requests, static_cast<std::size_t>(count));
  const auto first = std::find_if(list.begin(), list.end(), is_active);
  if (first == list.end()) return TORII_OK;
  if (is_forked(*first)) return invalid(torii::c::kForked);
  const auto other = std::find_if(first, list.end(), [first](const torii_request* one) {
    return is_active(one) && one->owner->context != (*first)->owner->context;
  });
  if (other == list.end()) {
    for (const torii_request* one : list) {
      const Status status = is_active(one) ? one->owner->team->operations().waits().check_caller() : Status::ok;
      if (status != Status::ok) return to_c(status);
    }
    return TORII_OK;
  }
  return invalid("requests " + std::to_string(first - list.begin()) + " and " + std::to_string(other - list.begin()) +
                 " are of two contexts; all of a list must be of one");
}

/// False also while another thread is inside the team, against the rules.
bool has_ended(torii_request* request) {
  return request->owner->team->operations().waits().test(request->request) == torii::HasEnded::yes;
}

/// The first active request that has ended; -1: none.
int find_ended(Requests list) {
  const auto ended =
      std::find_if(list.begin(), list.end(), [](torii_request* one) { return is_active(one) && has_ended(one); });
  return ended == list.end() ? -1 : static_cast<int>(ended - list.begin());
}

/// Grows whenever an operation of one of the teams moves.
std::uint64_t moves_of(Requests list) {
  std::uint64_t moves = 0;
  for (const torii_request* one : list) moves += is_active(one) ? one->owner->team->operations().moves() : 0;
  return moves;
}

/// Waits until an active request has ended, and returns its place; -1 if none is active. One wait, which spins and
/// sleeps as that for a single request does. The tests look for failures and deadlines.
int await_any(Requests list) {
  const auto first = std::find_if(list.begin(), list.end(), is_active);
  if (first == list.end()) return -1;
  const torii::CancellationHeld held;
  torii::Team& team = *(*first)->owner->team;
  torii::Waiting waiting = team.members().waiting();
  if (team.context().has_idle()) waiting.serve_others();
  struct Look {
    Requests list;
    std::uint64_t moves;
  } look = {list, moves_of(list)};
  const auto still_idle = [](void* data) {
    const auto& [requests, moves] = *static_cast<const Look*>(data);
    return find_ended(requests) < 0 && moves_of(requests) == moves;
  };
  for (;;) {
    if (const int ended = find_ended(list); ended >= 0) return ended;
    if (const std::uint64_t moves = moves_of(list); moves != look.moves) {
      look.moves = moves;
      waiting.moved();
      continue;
    }
    if (waiting.is_turn_of_others()) team.context().idle();
    (void)waiting.pause(still_idle, &look);
  }
}

/// Waits for the first of the requests. That wait looks for its failures alone, so now and then the others are tested:
/// maybe it is for them that the first one waits.
torii_status end_first(Requests list) {
  constexpr auto kTurnNs = torii::tuned<std::int64_t>("waiting.turn");
  torii_request*& first = list.front();
  const Requests others = list.subspan(1);
  if (!is_active(first) || std::ranges::none_of(others, is_active)) return torii_wait(&first);
  for (;;) {
    const torii::HasEnded has_first = first->owner->team->operations().waits().wait(first->request, kTurnNs);
    if (has_first == torii::HasEnded::yes) return finish(first);
    if (has_first == torii::HasEnded::refused) return TORII_INVALID_ARGUMENT;
    for (torii_request* const one : others) (void)(is_active(one) && has_ended(one));
  }
}

/// Ends all requests, in order. Returns the first status that is not TORII_OK, with its reason.
torii_status end_all(Requests list) {
  torii_status first = TORII_OK;
  std::string reason;
  for (; !list.empty(); list = list.subspan(1)) {
    const torii_status status = end_first(list);
    if (status == TORII_OK || first != TORII_OK) continue;
    first = status;
    (void)answered([&] { reason = torii_last_error(); });
  }
  if (first != TORII_OK) (void)answered([&] { torii::set_last_error(reason); });
  return first;
}

}  // namespace

extern "C" {

torii_status torii_test_any(torii_request** requests, int count, int* index) {
  if (index == nullptr) return invalid("the place for the index is NULL");
  *index = -1;
  Requests list;
  if (const torii_status status = read_list(requests, count, list); status != TORII_OK) return status;
  *index = find_ended(list);
  return *index >= 0 ? finish(requests[*index]) : TORII_OK;
}

torii_status torii_wait_any(torii_request** requests, int count, int* index) {
  if (index == nullptr) return invalid("the place for the index is NULL");
  *index = -1;
  Requests list;
  if (const torii_status status = read_list(requests, count, list); status != TORII_OK) return status;
  *index = await_any(list);
  return *index >= 0 ? finish(requests[*index]) : TORII_OK;
}

torii_status torii_test_all(torii_request** requests, int count, int* done) {
  if (done == nullptr) return invalid("the place for the answer is NULL");
  *done = 0;
  Requests list;
  if (const torii_status status = read_list(requests, count, list); status != TORII_OK) return status;
  // Each one is tested, so that all of their teams move.
  bool have_all_ended = true;
  for (torii_request* one : list) have_all_ended = (!is_active(one) || has_ended(one)) && have_all_ended;
  if (!have_all_ended) return TORII_OK;
  *done = 1;
  return end_all(list);
}

torii_status torii_wait_all(torii_request** requests, int count) {
  Requests list;
  if (const torii_status status = read_list(requests, count, list); status != TORII_OK) return status;
  return end_all(list);
}

torii_status torii_wait_some(torii_request** requests, int count, int* indices, torii_status* statuses, int* done) {
  if (indices == nullptr || done == nullptr) return invalid("the place for the indices or for their number is NULL");
  *done = 0;
  Requests list;
  if (const torii_status status = read_list(requests, count, list); status != TORII_OK) return status;
  if (await_any(list) < 0) return TORII_OK;
  torii_status first = TORII_OK;
  std::string reason;
  for (int i = 0; i < count; ++i) {
    if (!is_active(requests[i]) || !has_ended(requests[i])) continue;
    const torii_status status = finish(requests[i]);
    if (status != TORII_OK && first == TORII_OK) {
      first = status;
      (void)answered([&] { reason = torii_last_error(); });
    }
    if (statuses != nullptr) statuses[*done] = status;
    indices[(*done)++] = i;
  }
  if (first != TORII_OK) (void)answered([&] { torii::set_last_error(reason); });
  return first;
}

}  // extern "C"
