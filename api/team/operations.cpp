// SPDX-License-Identifier: Apache-2.0
// Moving operations, and waiting for them.
#include "api/team/operations.hpp"

#include <utility>

#include "runtime/base/cancellation.hpp"

namespace torii {
Operations::Operations(const Membership& members, TeamAgreement& agreement, PlanCache& plans,
                       std::size_t shared_channels, bool many_callers)
    : context_(members.context()),
      members_(members),
      agreement_(agreement),
      plans_(plans),
      failed_(agreement.failure_sign()),
      channels_(members.transport(), shared_channels),
      calls_(members.control()),
      monitor_(members, agreement, calls_, channels_, plans),
      polling_(members.waiting()),
      many_callers_(many_callers),
      health_(members, failed_) {
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

void Operations::complete(Channel& channel, Status status) noexcept {
  Request& request = *channel.current;
  request.state = Request::State::done;
  request.status = status;
  channel.current = nullptr;
  if (--in_flight_ == 0 && status == Status::ok) calls_.end_all();
  if (agreement_.owes_end()) agreement_.tell_end(calls_.standing(request));
  if (channel.queue.empty()) return;
  Request& next = *channel.queue.front();
  channel.queue.pop_front();
  start_on(channel, next);
}

/// True when the channel's operation moved or ended, be it with a failure.
bool Operations::advance(Channel& channel) noexcept {
  if (channel.awaited != 0) {
    if (!is_agreed(channel)) return false;
    begin(channel, *channel.current);
    return true;
  }
  switch (channel.execution.advance()) {
    case Execution::Progress::done:
      if (const Request& request = *channel.current; request.call_plan->tells_lengths(request.unequal.get())) {
        begin_blocks(channel, *channel.current);
      } else {
        complete(channel, Status::ok);
      }
      return true;
    case Execution::Progress::moved:
      return true;
    case Execution::Progress::idle:
      break;
  }
  if (channel.execution.status() == Status::ok) return false;
  monitor_.claim_transport(channel.execution, *channel.current);
  (void)adopt_failure();
  return true;
}

bool Operations::progress_channels() noexcept {
  bool moved = false;
  for (const auto& channel : channels_) {
    if (channel->current != nullptr && advance(*channel)) moved = true;
  }
  return moved;
}

bool Operations::progress() noexcept {
  context_.background().progress(this);
  return progress_channels();
}

Status Operations::run_to_end(Request& request) noexcept {
  if (request.state == Request::State::done) return request.status;
  // Most calls end here, without a look at the clock or at other operations.
  Channel& own = channels_[request.runs_on];
  for (int poll = 0; poll < kQuickPolls && own.current == &request; ++poll) {
    if (advance(own)) break;
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
      (void)adopt_failure();
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
    if (monitor_.finds_failure(polling_, request)) (void)adopt_failure();
  }
  return request.state == Request::State::done;
}

void Operations::enter_background() {
  const Inside inside(door_, many_callers_);
  if (in_background_ || in_flight_ == 0) return;
  in_background_ = true;
  context_.background().enter(this);
}

void Operations::leave_background_when_idle() {
  const Inside inside(door_, is_shared());
  if (!in_background_ || in_flight_ != 0) return;
  // Threads that go through the list only try the door.
  context_.background().leave(this);
  in_background_ = false;
}

bool Operations::progress_in_background() noexcept {
  if (!door_.try_enter()) return false;
  const bool moved = progress_channels();
  moved_by_others_ = moved_by_others_ || moved;
  door_.leave();
  return moved;
}

/// Whether all members agree on the installation that the channel awaits.
bool Operations::is_agreed(Channel& channel) noexcept {
  agreement_.progress();
  for (; channel.agreed_members < members_.ranks(); ++channel.agreed_members) {
    if (plans_.verdict(channel.agreed_members, channel.awaited) != InstallLog::Verdict::agrees) return false;
  }
  // Peers that wait for this rank's word are not served when this rank has left the call.
  if (!agreement_.words_have_left()) return false;
  const CallPlan& call_plan = *channel.current->call_plan;
  call_plan.on_channels[channel.current->runs_on].plan->unagreed = 0;
  if (call_plan.lengths != nullptr) call_plan.lengths->on_channels[channel.current->runs_on].plan->unagreed = 0;
  channel.awaited = 0;
  return true;
}

Status Operations::fail(Status status, int member, const std::string& text) noexcept {
  agreement_.claim(status, member, text);
  return adopt_failure();
}

Status Operations::adopt_failure() noexcept {
  Cause cause = agreement_.read_cause();
  const Status status = cause.status;
  for (const auto& channel : channels_) {
    channel->execution.abandon();
    for (Request* request : channel->queue) {
      request->state = Request::State::done;
      request->status = status;
      --in_flight_;
    }
    channel->queue.clear();
    if (channel->current != nullptr) complete(*channel, status);
  }
  if (poisoned_) {
    set_last_error("the team is poisoned: " + cause.text + "; make a new one of the survivors");
    return Status::poisoned;
  }
  poisoned_ = true;
  set_last_error(cause.text);
  health_.tell(std::move(cause));
  return status;
}

}  // namespace torii
