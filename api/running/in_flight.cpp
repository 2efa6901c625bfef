// SPDX-License-Identifier: Apache-2.0
// Operations in flight: how they begin, move and end.
#include "api/running/in_flight.hpp"

#include <algorithm>
#include <utility>

#include "api/calls/call_buffers.hpp"
#include "api/calls/finish.hpp"
#include "api/calls/last_error.hpp"
#include "api/running/caught.hpp"
#include "runtime/base/cancellation.hpp"

namespace torii {

InFlight::InFlight(const Membership& members, FailureRecords& failures, CallBoard& board, PlanCache& plans,
                   const Channels& channels, TeamPairs& pairs, OwnCalls& calls, FailureMonitor& monitor,
                   ArenaCopies& copies) noexcept
    : context_(members.context()),
      members_(members),
      failures_(failures),
      board_(board),
      plans_(plans),
      channels_(channels),
      pairs_(pairs),
      calls_(calls),
      monitor_(monitor),
      copies_(copies),
      health_(members, failures.failure_sign()) {}

void InFlight::start_on(Channel& channel, Request& request) noexcept {
  channel.current = &request;
  request.state = Request::State::running;
  channel.awaits_rings = request.lacks_copy || !request.call_plan->is_ready_on(request.runs_on);
  if (!channel.awaits_rings) begin(channel, request);
}

void InFlight::begin(Channel& channel, Request& request) noexcept {
  const CallPlan& call_plan = *request.call_plan;
  if (call_plan.lengths != nullptr) {
    if (request.unequal->is_told) return begin_blocks(channel, request);
    const CallPlan::OnChannel& installed = call_plan.lengths->on_channels[request.runs_on];
    return channel.execution.begin(*installed.plan, call_plan.lengths->shape, length_buffers(request),
                                   installed.program());
  }
  const CallPlan::OnChannel& installed = call_plan.on_channels[request.runs_on];
  // A linear program needs addresses. Peers may run it although this rank does not: the messages are the same.
  const LinearProgram* const program = request.call.access() != nullptr ? nullptr : installed.program();
  channel.execution.begin(*installed.plan, call_plan.shape, buffers_of(request, context_, program != nullptr), program);
}

/// The lengths are known: the call's own plan begins, or the team fails if this rank's length differs.
void InFlight::begin_blocks(Channel& channel, Request& request) noexcept {
  UnequalBlocks& unequal = *request.unequal;
  if (!unequal.is_told) {
    const CallSpec& spec = request.call.spec;
    const std::size_t own_bytes = request.call.blocks()->count * request.call_plan->shape.element_bytes;
    try {
      const std::uint64_t told_bytes = unequal.lengths[static_cast<std::size_t>(members_.rank())];
      if (told_bytes != own_bytes) {
        (void)fail(Status::mismatch, members_.rank(),
                   members_.text(spec.root) + " has " + std::to_string(told_bytes) + " bytes for " +
                       members_.text(members_.rank()) + ", which has " + std::to_string(own_bytes) +
                       ": unequal lengths for a block between them during " + call_text(spec));
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

/// The members have told where the channel's own rings are, or the team has failed: true if something has changed.
bool InFlight::find_rings(Channel& channel) noexcept {
  Request& request = *channel.current;
  try {
    members_.take_messages();
    if (!plans_.make_ready_on(*request.call_plan, request.runs_on)) return false;
    channel.awaits_rings = request.lacks_copy = false;
    if (copy_input(request)) {
      begin(channel, request);
    } else {
      (void)fail_without_copy(request);
    }
  } catch (const Error& error) {
    (void)fail(error.status(), members_.rank(), error.what());
  } catch (const std::exception& error) {
    (void)fail(Status::no_resource, members_.rank(), error.what());
  }
  return true;
}

void InFlight::tell_end(Request& request) noexcept {
  if (request.on_done != nullptr) {
    const CancellationHeld held;
    std::exchange(request.on_done, nullptr)(static_cast<torii_status>(request.status), request.on_done_data);
  }
  if (context_.end_event().is_watched()) context_.end_event().ring();
}

void InFlight::complete(Channel& channel, Status status) noexcept {
  Request& request = *channel.current;
  if (const CallPlan& call_plan = *request.call_plan; call_plan.is_finished_at_end && status == Status::ok) {
    const void* const from = call_plan.sums_as_float ? request.copies.result.data.get() : request.call.memory.result;
    finish(call_plan, from, request.call.memory.result, request.result_bytes() / call_plan.shape.element_bytes);
  }
  end(request, status);
  channel.current = nullptr;
  take_back(request);
  if (status == Status::ok) tell_ended();
  if (board_.must_report_end()) board_.tell_end(calls_.snapshot_of(request));
  if (channel.queue.empty()) return;
  Request& next = *channel.queue.front();
  channel.queue.pop_front();
  start_on(channel, next);
}

/// A rank that always has a call in flight ends those before it all the same. The last call does not count: it may be
/// the one that is being started, which is on no channel yet.
void InFlight::tell_ended() noexcept {
  if (count() == 0) return calls_.end_all();
  std::uint64_t oldest = calls_.sequence();
  for (std::size_t at = 0; at < channels_.shared(); ++at) {
    const Channel& channel = channels_[at];
    const Request* first = channel.current;  // of a channel the oldest one
    if (first == nullptr && !channel.queue.empty()) first = channel.queue.front();
    if (first != nullptr) oldest = std::min(oldest, first->sequence);
  }
  if (oldest != 0) calls_.end_below(oldest);
}

bool InFlight::advance(Channel& channel) noexcept {
  if (!move(channel)) return false;
  note_move();
  return true;
}

bool InFlight::move(Channel& channel) noexcept {
  if (channel.awaits_rings) return find_rings(channel);
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

bool InFlight::progress() noexcept {
  bool moved = false;
  for (const auto& channel : channels_) {
    if (channel->current != nullptr && advance(*channel)) moved = true;
  }
  if (pairs_.are_used() && progress_pairs()) moved = true;
  return moved;
}

bool InFlight::progress_pairs() noexcept {
  const bool moved = pairs_.progress();
  if (moved) note_move();
  end_pairs();
  if (pairs_.status() != Status::ok && !is_poisoned()) fail_pairs();
  return moved;
}

void InFlight::look_for_sends() noexcept {
  if (!pairs_.are_wanted()) return;
  try {
    pairs_.install();
  } catch (const std::exception&) {
    return;  // tried again in the next slow check
  }
}

Status InFlight::start_pair(Request& request, bool has_failed) noexcept {
  const Status refused = caught([&] { pairs_.check(*request.pair); });
  if (refused != Status::ok) return refused;
  if (has_failed) return adopt_failure();
  const Status started = caught([&] { pairs_.start(request); });
  if (started != Status::ok) return started;
  end_pairs();
  if (pairs_.status() != Status::ok) fail_pairs();
  return Status::ok;
}

bool InFlight::withdraw(Request& request) noexcept {
  if (!pairs_.withdraw(request)) return false;
  end_pairs();
  return true;
}

void InFlight::drop_pairs() noexcept {
  pairs_.abandon(Status::aborted);
  end_pairs();
}

void InFlight::end_pairs() noexcept {
  for (PairOperation* one = pairs_.take_done(); one != nullptr;) {
    const PairOperation& ended = *std::exchange(one, one->next_done);
    end(*static_cast<Request*>(ended.owner), ended.status);
  }
}

void InFlight::fail_pairs() noexcept {
  try {
    (void)fail(pairs_.status(), pairs_.failed_member(), pairs_.failure_text());
  } catch (const std::exception&) {
    (void)fail(pairs_.status(), pairs_.failed_member(), "out of memory");
  }
}

Status InFlight::fail(Status status, int member, const std::string& text) noexcept {
  monitor_.claim(status, member, text);
  return adopt_failure();
}

Status InFlight::fail_without_copy(const Request& request) noexcept {
  return fail(Status::no_resource, members_.rank(),
              "rank " + std::to_string(members_.rank()) + " has no " + std::to_string(request.input_bytes()) +
                  " bytes for a copy of its input in this " + call_text(request.call.spec));
}

Status InFlight::adopt_failure() noexcept {
  Cause cause = failures_.read_cause();
  const Status status = cause.status;
  for (const auto& channel : channels_) {
    channel->execution.abandon();
    for (Request* request : channel->queue) {
      end(*request, status);
      take_back(*request);
    }
    channel->queue.clear();
    if (channel->current != nullptr) complete(*channel, status);
  }
  pairs_.abandon(status);
  end_pairs();
  if (is_poisoned()) {
    set_last_error("the team is poisoned: " + cause.text + "; make a new one of the survivors");
    return Status::poisoned;
  }
  state_ |= kPoisoned;
  set_last_error(cause.text);
  health_.tell(std::move(cause));
  return status;
}

}  // namespace torii
