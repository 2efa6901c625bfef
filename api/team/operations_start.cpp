// SPDX-License-Identifier: Apache-2.0
// From a call to an operation that runs: call plan, number, channel, installed plan, buffers.
#include <algorithm>

#include "api/team/call_buffers.hpp"
#include "api/team/operations.hpp"
#include "runtime/base/cancellation.hpp"

namespace torii {
namespace {

Status refuse_forked_child() noexcept {
  set_last_error("this process was forked from the one that made the context: it may only exec or exit");
  return Status::invalid_argument;
}

}  // namespace

CallPlan* Operations::prepare(Request& request, Status& status) noexcept {
  const Inside inside(busy_, in_background_);
  return prepare_inside(request, status);
}

CallPlan* Operations::prepare_inside(Request& request, Status& status) noexcept {
  try {
    take_blocks(request, members_);
    if (last_call_plan_ == nullptr || !same_call(last_call_plan_->arguments, request.arguments, members_.ranks())) {
      const CancellationHeld held;
      last_call_plan_ = plans_.find(request.arguments, in_flight_ == 0);
    }
    check_buffers(request.arguments, *last_call_plan_);
    return last_call_plan_;
  } catch (const Error& error) {
    status = error.status();
    set_last_error(error.what());
  } catch (const std::exception& error) {
    status = Status::no_resource;
    set_last_error(error.what());
  }
  return nullptr;
}

/// Gives the request its number and its channel.
void Operations::take_place(Request& request) noexcept {
  if (request.channel >= 0) {
    request.salt = request.salt_prepared + 2 * request.starts_refused;
    request.runs_on = static_cast<std::size_t>(request.channel);
    request.sequence = persistent_sequence(request.runs_on, ++channels_[request.runs_on].starts);
    return;
  }
  request.salt = calls_.history().salt();
  calls_.history().add(request.call_plan->shape.signature);
  request.sequence = calls_.count();
  request.runs_on = channels_.next();
  channels_.advance_next();
}

/// Installs the request's plan, and makes room in the queue if the request has to wait.
Status Operations::make_ready(Request& request) noexcept {
  const CancellationHeld held;
  try {
    plans_.install_on(*request.call_plan, request.runs_on, *this);
    if (Channel& channel = channels_[request.runs_on]; channel.current != nullptr) channel.queue.push_back(&request);
    return Status::ok;
  } catch (const Error& error) {
    set_last_error(error.what());
    if (poisoned_) return error.status();  // learnt while staging was recycled: the cause, told once
    return failed_.is_set() ? adopt_failure() : fail(error.status(), members_.rank(), error.what());
  } catch (const std::exception& error) {
    return fail(Status::no_resource, members_.rank(), error.what());
  }
}

Status Operations::start(Request& request) noexcept {
  if (context_.is_forked_child()) return refuse_forked_child();
  if (poisoned_ || failed_.is_set()) return adopt_failure();
  Status status = Status::ok;
  request.call_plan = prepare_inside(request, status);
  if (request.call_plan == nullptr) {
    ++request.starts_refused;
    note_refusal(calls_.count(), last_error());
    return status;
  }
  take_place(request);
  calls_.show(*request.call_plan, salted(request.call_plan->record_kind, request.salt), request.sequence);
  if (request.arguments.count == 0 && request.arguments.collective != Collective::barrier &&
      request.unequal == nullptr) {
    request.state = Request::State::done;
    request.status = Status::ok;
    if (in_flight_ == 0) calls_.end_all();
    return Status::ok;
  }
  ++in_flight_;  // before the plan is installed: calls that end meanwhile must not count this one as ended
  Channel& channel = channels_[request.runs_on];
  if (channel.current != nullptr || request.call_plan->on_channels.size() <= request.runs_on ||
      request.call_plan->on_channels[request.runs_on].plan == nullptr) {
    status = make_ready(request);
    if (status != Status::ok) {
      --in_flight_;
      return status;
    }
  }
  if (!copy_input(request)) {
    --in_flight_;
    if (!channel.queue.empty() && channel.queue.back() == &request) channel.queue.pop_back();
    return fail(Status::no_resource, members_.rank(),
                "rank " + std::to_string(members_.rank()) + " has no " + std::to_string(request.input_bytes()) +
                    " bytes for a copy of its input in this " + call_text(request.arguments));
  }
  request.state = Request::State::queued;
  if (channel.current == nullptr) start_on(channel, request);
  return Status::ok;
}

void Operations::start_on(Channel& channel, Request& request) noexcept {
  channel.current = &request;
  request.state = Request::State::running;
  const CallPlan& call_plan = *request.call_plan;
  channel.awaited = call_plan.on_channels[request.runs_on].plan->unagreed;
  if (call_plan.lengths != nullptr) {
    channel.awaited = std::max(channel.awaited, call_plan.lengths->on_channels[request.runs_on].plan->unagreed);
  }
  channel.agreed_members = 0;
  if (channel.awaited == 0) begin(channel, request);
}

void Operations::begin(Channel& channel, Request& request) noexcept {
  const CallPlan& call_plan = *request.call_plan;
  if (call_plan.lengths != nullptr) {
    if (request.unequal->is_told) return begin_blocks(channel, request);
    const CallPlan::OnChannel& installed = call_plan.lengths->on_channels[request.runs_on];
    return channel.execution.begin(*installed.plan, call_plan.lengths->shape, length_buffers(request),
                                   installed.program.get());
  }
  const CallPlan::OnChannel& installed = call_plan.on_channels[request.runs_on];
  // A linear program needs addresses. Peers may run it although this rank does not: the messages are the same.
  const LinearProgram* const program = request.arguments.access.load != nullptr ? nullptr : installed.program.get();
  channel.execution.begin(*installed.plan, call_plan.shape, buffers_of(request, context_, program != nullptr), program);
}

/// The lengths are known: the call's own plan begins, or the team fails if this rank's length differs.
void Operations::begin_blocks(Channel& channel, Request& request) noexcept {
  UnequalBlocks& unequal = *request.unequal;
  if (!unequal.is_told) {
    const CallArguments& arguments = request.arguments;
    const std::size_t own_bytes = arguments.count * request.call_plan->shape.element_bytes;
    try {
      const std::uint64_t told_bytes = unequal.lengths[static_cast<std::size_t>(members_.rank())];
      if (told_bytes != own_bytes) {
        (void)fail(Status::mismatch, members_.rank(),
                   members_.text(arguments.root) + " has " + std::to_string(told_bytes) + " bytes for " +
                       members_.text(members_.rank()) + ", which has " + std::to_string(own_bytes) +
                       ": unequal lengths for a block between them during " + call_text(arguments));
        return;
      }
      take_lengths(request, members_.rank());
    } catch (const std::exception& error) {
      (void)fail(Status::no_resource, members_.rank(), error.what());
      return;
    }
    unequal.is_told = true;
  }
  const CallPlan::OnChannel& installed = request.call_plan->on_channels[request.runs_on];
  channel.execution.begin(*installed.plan, unequal.shape, block_buffers(request, context_));
}

Status Operations::open_channel(Request& request) noexcept {
  const CancellationHeld held;
  const Inside inside(busy_, in_background_);
  if (context_.is_forked_child()) return refuse_forked_child();
  if (poisoned_ || failed_.is_set()) return adopt_failure();
  Status status = Status::ok;
  // An operation that is prepared counts as a call, so that one rank alone cannot refuse it unnoticed.
  const std::uint64_t sequence = calls_.count();
  request.salt_prepared = calls_.history().salt();
  request.call_plan = prepare_inside(request, status);
  if (request.call_plan == nullptr) {
    note_refusal(sequence, last_error());
    return status;
  }
  calls_.history().add_prepared(request.call_plan->shape.signature);
  const std::uint64_t kind = request.call_plan->record_kind ^ kPreparesInRecord;
  calls_.show(*request.call_plan, salted(kind, request.salt_prepared), sequence);
  status = take_channel(request);
  if (status != Status::ok && !poisoned_) note_refusal(sequence, last_error());
  if (status == Status::ok && in_flight_ == 0) calls_.end_all();
  return status;
}

/// Gives a persistent operation the lowest free channel, and installs its plan there.
Status Operations::take_channel(Request& request) noexcept {
  try {
    // Taken only when its plan is installed: until then this operation does not prevent recycling.
    const int channel = channels_.lowest_free();
    plans_.install_on(*request.call_plan, static_cast<std::size_t>(channel), *this);
    channels_.take(channel);
    request.channel = channel;
  } catch (const Error& error) {
    set_last_error(error.what());
    return error.status();
  } catch (const std::exception& error) {
    set_last_error(error.what());
    return Status::no_resource;
  }
  return Status::ok;
}

void Operations::close_channel(const Request& request) noexcept {
  if (request.channel >= 0) channels_.give_back(request.channel);
}

void Operations::count_refusal(const char* reason) noexcept {
  const Inside inside(busy_, in_background_);
  if (!context_.is_forked_child() && !poisoned_ && !failed_.is_set()) note_refusal(calls_.count(), reason);
}

/// Call number `sequence` of this rank was refused. Between nodes the notice leaves now: this rank may not be in a call
/// again for long.
void Operations::note_refusal(std::uint64_t sequence, const char* reason) noexcept {
  agreement_.put_refusal(calls_.refuse(sequence, reason));
}

Status Operations::give_up(Status status, const std::string& reason) noexcept {
  const Inside inside(busy_, in_background_);
  return poisoned_ || failed_.is_set() ? adopt_failure() : fail(status, members_.rank(), reason);
}

void Operations::finish_all() {
  if (!channels_.are_all_free()) {
    throw Error(Status::no_resource,
                "the team's staging is used up while persistent operations hold plans in it; make "
                "fewer of them, or more teams");
  }
  for (const auto& channel : channels_) {
    while (channel->current != nullptr) {
      const Status status = run_to_end(*channel->current);
      if (status != Status::ok) throw Error(status, last_error());
    }
  }
}

void Operations::wait_for(int member, const std::string& purpose, const std::function<bool()>& is_there) {
  Waiting waiting = members_.waiting();
  while (!is_there()) {
    // The member may be waiting for this rank on another team first.
    context_.background().progress(this);
    if (progress_channels()) {
      // Or for an operation of this team that only this rank's caller moves.
      if (poisoned_) throw Error(health_.cause().status, health_.cause().text);
      waiting.moved();
      continue;
    }
    agreement_.progress();
    if (waiting.is_turn_of_others()) context_.idle();
    auto still_idle = [&] { return !is_there(); };
    const auto ask = [](void* idle) { return (*static_cast<decltype(still_idle)*>(idle))(); };
    if (!waiting.pause(ask, &still_idle)) continue;
    if (!monitor_.finds_failure_in_start(waiting, member, purpose)) continue;
    const Status status = adopt_failure();
    throw Error(status, last_error());
  }
}

}  // namespace torii
