// SPDX-License-Identifier: Apache-2.0
// Moving operations, and waiting for them.
#include "api/team/operations.hpp"

#include <utility>

#include "api/team/finish.hpp"
#include "runtime/base/cancellation.hpp"

namespace torii {

Operations::Operations(const Membership& members, TeamAgreement& agreement, PlanCache& plans,
                       std::size_t shared_channels)
    : context_(members.context()),
      members_(members),
      agreement_(agreement),
      plans_(plans),
      failed_(agreement.failure_sign()),
      channels_(members.transport(), shared_channels),
      calls_(members.control()),
      monitor_(members, agreement, calls_, channels_, plans),
      polling_(members.waiting()),
      health_(members, failed_) {
  context_.attach(this);
}

void Operations::close() noexcept {
  if (in_background_) context_.background().leave(this);
  context_.detach(this);
}

Status Operations::submit(Request& request) noexcept {
  const CancellationHeld held(context_.several_nodes());
  const Inside inside(busy_, in_background_);
  return start(request);
}

Status Operations::run(Request& request) noexcept {
  const CancellationHeld held(context_.several_nodes());
  const Inside inside(busy_, in_background_);
  const Status status = start(request);
  return status == Status::ok ? run_to_end(request) : status;
}

void Operations::complete(Channel& channel, Status status) noexcept {
  Request& request = *channel.current;
  if (const CallPlan& call_plan = *request.call_plan; call_plan.is_finished_at_end && status == Status::ok) {
    const void* const from = call_plan.sums_as_float ? request.result_copy.get() : request.arguments.result;
    finish(call_plan, from, request.arguments.result, request.result_bytes() / call_plan.shape.element_bytes);
  }
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

Status Operations::wait(Request& request) noexcept {
  const CancellationHeld held(context_.several_nodes());
  const Inside inside(busy_, in_background_);
  return run_to_end(request);
}

Status Operations::run_to_end(Request& request) noexcept {
  if (request.state == Request::State::done) return request.status;
  // Most calls end here, without a look at the clock or at other operations.
  Channel& own = channels_[request.runs_on];
  for (int poll = 0; poll < kQuickPolls && own.current == &request; ++poll) {
    if (advance(own)) break;
  }
  return wait_until_done(request);
}

Status Operations::wait_until_done(Request& request) noexcept {
  if (request.state == Request::State::done) return request.status;
  const CancellationHeld held;
  const auto still_idle = [](void* operations) { return !static_cast<Operations*>(operations)->progress(); };
  Waiting waiting = members_.waiting();
  while (request.state != Request::State::done) {
    if (progress()) {
      waiting.moved();
      continue;
    }
    if (waiting.is_turn_of_others()) context_.idle();
    if (!waiting.pause(still_idle, this)) continue;
    if (request.state == Request::State::done) break;  // it ended in the pause, maybe with the team's failure
    if (monitor_.finds_failure(waiting, request)) return adopt_failure();
  }
  return request.status;
}

bool Operations::test(Request& request) noexcept {
  const CancellationHeld held(context_.several_nodes());
  const Inside inside(busy_, in_background_);
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
  if (in_background_ || in_flight_ == 0) return;
  in_background_ = true;
  context_.background().enter(this);
}

void Operations::leave_background_when_idle() {
  if (!in_background_) return;
  {
    const Inside inside(busy_, true);
    if (in_flight_ != 0) return;
  }
  context_.background().leave(this);
  in_background_ = false;
}

bool Operations::progress_in_background() noexcept {
  if (busy_.test_and_set(std::memory_order_acquire)) return false;
  const bool moved = progress_channels();
  moved_by_others_ = moved_by_others_ || moved;
  busy_.clear(std::memory_order_release);
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
