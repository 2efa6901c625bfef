// SPDX-License-Identifier: Apache-2.0
// Spinning, sleeping and looking for failures, by one thread or several.
#include "api/running/waits.hpp"

#include <algorithm>
#include <new>

#include "api/calls/last_error.hpp"
#include "runtime/base/cancellation.hpp"

namespace torii {

Waits::Waits(const Membership& members, const Channels& channels, FailureMonitor& monitor, InFlight& in_flight,
             AttachedTeam& team, bool many_callers)
    : context_(members.context()),
      members_(members),
      channels_(channels),
      monitor_(monitor),
      in_flight_(in_flight),
      team_(team),
      several_nodes_(members.context().several_nodes()),
      polling_{members.waiting()},
      use_(many_callers) {}

bool Waits::progress() noexcept {
  context_.background().progress(&team_);
  return in_flight_.progress();
}

/// Most calls end in the first polls, without a look at the clock or at other operations.
void Waits::poll_quickly(Request& request) noexcept {
  if (request.state == Request::State::done) return;
  if (request.pair != nullptr) {
    for (int poll = 0; poll < kQuickPolls && request.state != Request::State::done; ++poll) {
      (void)in_flight_.progress_pairs();
    }
    return;
  }
  Channel& own = channels_[request.runs_on];
  for (int poll = 0; poll < kQuickPolls && own.current == &request; ++poll) {
    if (in_flight_.advance(own)) break;
  }
}

void Waits::poll_then_wait(Request& request) noexcept {
  poll_quickly(request);
  (void)wait_until(request, kNever);
}

Status Waits::run_to_completion(Request& request) noexcept {
  poll_then_wait(request);
  return resume(request);
}

Status Waits::resume(Request& request) noexcept {
  (void)wait_until(request, kNever);
  (void)ends_with(request);
  // Another thread may have moved the operation last, which alone was told the cause of a failure.
  if (request.status != Status::ok) set_last_error(in_flight_.health().cause().text);
  return request.status;
}

Status Waits::check_caller() const noexcept {
  if (context_.is_forked_child()) return Entry::refuse(true);
  return use_.is_taken() ? Entry::refuse(false) : Status::ok;
}

Status Waits::wait(Request& request) noexcept {
  const CancellationHeld held(several_nodes_);
  const Entry entry = enter();
  if (entry.is_refused()) return entry.refuse();
  poll_then_wait(request);
  (void)ends_with(request);
  return Status::ok;
}

HasEnded Waits::wait(Request& request, std::int64_t most_ns) noexcept {
  const CancellationHeld held;
  const Entry entry = enter();
  if (entry.is_refused()) {
    (void)entry.refuse();
    return HasEnded::refused;
  }
  return ends_within(request, most_ns) ? HasEnded::yes : HasEnded::no;
}

bool Waits::ends_within(Request& request, std::int64_t most_ns) noexcept {
  poll_quickly(request);
  if (ends_with(request)) return true;
  // A caller may wait for a moment each time. Together these waits find the same failures as one long wait.
  Polling& polling = polling_of(request);
  polling.note_moves(in_flight_.moves());
  (void)polling.waiting.poll_after(0);
  const std::int64_t begin_ns = now_ns();
  if (wait_until(request, most_ns < kNever - begin_ns ? begin_ns + most_ns : kNever)) return ends_with(request);
  polling.note_moves(in_flight_.moves());
  if (polling.is_turn_of(request.checks.turn, polling.waiting.poll_after(most_ns))) {
    run_slow_checks(polling.waiting, request);
  }
  if (ends_with(request)) return true;
  try {
    set_last_error("not yet done: " + monitor_.phase_text(request));
  } catch (const std::exception&) {
    set_last_error("not yet done, and there is no memory to say why");
  }
  return false;
}

/// True when the request has ended, false if now_ns() came to `end_ns` first. Other callers come in while this one
/// pauses, and may move or end what it waits for.
bool Waits::wait_until(Request& request, std::int64_t end_ns) noexcept {
  if (request.state == Request::State::done) return true;
  const CancellationHeld held;
  struct Look {
    Waits& waits;
    const Request& request;
  } look{*this, request};
  const auto still_idle = [](void* data) {
    const auto& [waits, awaited] = *static_cast<Look*>(data);
    const Locked locked(waits.lock_, waits.use_.has_many_callers());
    return !waits.progress() && awaited.state != Request::State::done;
  };
  const auto is_late = [end_ns] { return end_ns != kNever && now_ns() >= end_ns; };
  const bool has_many_callers = use_.has_many_callers();
  Waiting waiting = members_.waiting(request.timeout_ns(members_.timeout_ns()));
  if (context_.has_idle()) waiting.serve_others();
  std::uint64_t moves = in_flight_.moves();
  while (request.state != Request::State::done) {
    (void)progress();
    if (in_flight_.moves() != moves) {
      moves = in_flight_.moves();
      waiting.moved();
      if (is_late() && request.state != Request::State::done) return false;
      const Unlocked unlocked(lock_, has_many_callers && lock_.has_waiters());
      continue;
    }
    bool is_time_for_checks = false;
    {
      const Unlocked unlocked(lock_, has_many_callers);
      // The caller's function may call this team or another one. With the lock, it could wait for a thread that waits
      // for this lock.
      if (waiting.is_turn_of_others()) context_.idle();
      is_time_for_checks = waiting.pause(still_idle, &look);
    }
    if (request.state == Request::State::done) break;  // it ended in the pause, maybe with the team's failure
    if (is_late()) return false;
    if (!is_time_for_checks) continue;
    in_flight_.look_for_sends();
    if (in_flight_.moves() != moves) continue;
    if (monitor_.finds_failure(waiting, request)) (void)in_flight_.adopt_failure();
  }
  return true;
}

HasEnded Waits::test(Request& request) noexcept {
  const CancellationHeld held(several_nodes_);
  const Entry entry = enter();
  if (entry.is_refused()) {
    (void)entry.refuse();
    return HasEnded::refused;
  }
  if (ends_with(request)) return HasEnded::yes;
  (void)progress();
  if (ends_with(request)) return HasEnded::yes;
  Polling& polling = polling_of(request);
  polling.note_moves(in_flight_.moves());
  if (polling.is_turn_of(request.checks.turn, polling.waiting.poll())) run_slow_checks(polling.waiting, request);
  return ends_with(request) ? HasEnded::yes : HasEnded::no;
}

/// Asked at the end of a wait and of a test. When nothing is in flight the background has nothing to move. A thread
/// that moves operations there only tries the team's lock, so the holder of that lock may change the list of the
/// background.
bool Waits::ends_with(const Request& request) noexcept {
  if (request.state != Request::State::done) return false;
  if (use_.has(TeamUse::kInBackground) && in_flight_.is_idle()) {
    context_.background().leave(&team_);
    use_.remove(TeamUse::kInBackground);
  }
  return true;
}

/// A request with a deadline of its own polls by that; without memory, by the team's.
Polling& Waits::polling_of(Request& request) noexcept {
  if (request.call.extras.timeout_ns == 0) return polling_;
  if (request.polling == nullptr) {
    request.polling.reset(new (std::nothrow) Polling{members_.waiting(request.call.extras.timeout_ns)});
  }
  return request.polling != nullptr ? *request.polling : polling_;
}

/// The slow checks of a caller that polls.
void Waits::run_slow_checks(const Waiting& waiting, Request& request) noexcept {
  const CancellationHeld held;
  if (monitor_.finds_failure(waiting, request)) (void)in_flight_.adopt_failure();
}

void Waits::close() noexcept {
  if (use_.has(TeamUse::kInBackground)) context_.background().leave(&team_);
}

bool Waits::progress_in_background() noexcept {
  if (!lock_.try_lock()) return false;
  const bool moved = in_flight_.progress();
  lock_.unlock();
  return moved;
}

}  // namespace torii
