// SPDX-License-Identifier: Apache-2.0
// The waits for the end of an operation, and the threads that move it meanwhile.
#include "api/team/operations.hpp"

#include "runtime/base/cancellation.hpp"

namespace torii {
Operations::Operations(const Membership& members, TeamAgreement& agreement, PlanCache& plans, std::size_t pairs_offset,
                       std::size_t shared_channels, bool many_callers)
    : context_(members.context()),
      members_(members),
      agreement_(agreement),
      plans_(plans),
      failed_(agreement.failure_sign()),
      channels_(members.transport(), shared_channels),
      pairs_(members, pairs_offset),
      calls_(members.control()),
      monitor_(members, agreement, calls_, channels_, plans),
      in_flight_(members, agreement, plans, channels_, pairs_, calls_, monitor_),
      polling_(members.waiting()),
      many_callers_(many_callers) {
  context_.attach(this);
}

void Operations::close() noexcept {
  if (in_background_) context_.background().leave(this);
  context_.detach(this);
}

Status Operations::submit(Request& request) noexcept {
  const CancellationHeld held(context_.several_nodes());
  const Inside inside(door_, is_shared());
  return start(request);
}

Status Operations::run(Request& request) noexcept {
  const CancellationHeld held(context_.several_nodes());
  const Inside inside(door_, is_shared());
  const Status status = start(request);
  return status == Status::ok ? run_to_end(request) : status;
}

bool Operations::progress() noexcept {
  context_.background().progress(this);
  return in_flight_.progress();
}

Status Operations::run_to_end(Request& request) noexcept {
  if (request.state == Request::State::done) return request.status;
  if (request.pair != nullptr) {
    for (int poll = 0; poll < kQuickPolls && request.state != Request::State::done; ++poll) {
      (void)in_flight_.progress_pairs();
    }
    (void)wait_until(request, kNever);
    return request.status;
  }
  // Most calls end here, without a look at the clock or at other operations.
  Channel& own = channels_[request.runs_on];
  for (int poll = 0; poll < kQuickPolls && own.current == &request; ++poll) {
    if (in_flight_.advance(own)) break;
  }
  (void)wait_until(request, kNever);
  return request.status;
}

bool Operations::wait(Request& request, std::int64_t most_ns) noexcept {
  const CancellationHeld held(context_.several_nodes());
  const Inside inside(door_, is_shared());
  if (most_ns == kNever) {
    (void)run_to_end(request);
    return true;
  }
  const std::int64_t begin_ns = now_ns();
  if (wait_until(request, most_ns < kNever - begin_ns ? begin_ns + most_ns : kNever)) return true;
  try {
    set_last_error("not yet done: " + monitor_.phase_text(request));
  } catch (const std::exception&) {
    set_last_error("not yet done, and there is no memory to say why");
  }
  return false;
}

/// True when the request has ended, false if now_ns() came to `end_ns` first. Other callers come in while this one
/// pauses.
bool Operations::wait_until(Request& request, std::int64_t end_ns) noexcept {
  if (request.state == Request::State::done) return true;
  const CancellationHeld held;
  const auto still_idle = [](void* self) {
    Operations& operations = *static_cast<Operations*>(self);
    const Inside inside(operations.door_, operations.many_callers_);
    return !operations.progress();
  };
  const auto is_late = [end_ns] { return end_ns != kNever && now_ns() >= end_ns; };
  Waiting waiting = members_.waiting();
  while (request.state != Request::State::done) {
    if (progress()) {
      waiting.moved();
      if (is_late() && request.state != Request::State::done) return false;
      if (door_.is_wanted()) const Outside outside(door_, many_callers_);
      continue;
    }
    if (waiting.is_turn_of_others()) context_.idle();
    bool is_time_for_checks = false;
    {
      const Outside outside(door_, many_callers_);
      is_time_for_checks = waiting.pause(still_idle, this);
    }
    if (request.state == Request::State::done) break;  // it ended in the pause, maybe with the team's failure
    if (is_late()) return false;
    if (!is_time_for_checks) continue;
    if (monitor_.finds_failure(waiting, request)) {
      (void)in_flight_.adopt_failure();
      return true;
    }
  }
  return true;
}

bool Operations::test(Request& request) noexcept {
  const CancellationHeld held(context_.several_nodes());
  const Inside inside(door_, is_shared());
  if (request.state == Request::State::done) return true;
  // Between two tests others may have moved what this caller then finds done, or waiting for more.
  if (progress() || moved_by_others_) polling_.moved();
  moved_by_others_ = false;
  if (request.state != Request::State::done && polling_.poll()) {
    const CancellationHeld held_in_check;
    if (monitor_.finds_failure(polling_, request)) (void)in_flight_.adopt_failure();
  }
  return request.state == Request::State::done;
}

void Operations::enter_background() {
  const Inside inside(door_, many_callers_);
  if (in_background_ || in_flight_.is_idle()) return;
  in_background_ = true;
  context_.background().enter(this);
}

void Operations::leave_background_when_idle() {
  const Inside inside(door_, is_shared());
  if (!in_background_ || !in_flight_.is_idle()) return;
  // Threads that go through the list only try the door.
  context_.background().leave(this);
  in_background_ = false;
}

bool Operations::progress_in_background() noexcept {
  if (!door_.try_enter()) return false;
  const bool moved = in_flight_.progress();
  moved_by_others_ = moved_by_others_ || moved;
  door_.leave();
  return moved;
}

}  // namespace torii
