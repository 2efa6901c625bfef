// SPDX-License-Identifier: Apache-2.0
// Running operations: channels, queues, waiting.
#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>

#include "api/team/board.hpp"
#include "api/team/team.hpp"
#include "runtime/base/cancellation.hpp"

namespace torii {
namespace {

bool needs_input_copy(const CallArguments& arguments) noexcept {
  return arguments.collective == Collective::alltoall && arguments.input == arguments.result;
}

/// What each call has to pass by itself: the rest holds for all calls that are prepared alike.
void check_buffers(const CallArguments& arguments, const Prepared& prepared) {
  const bool has_memory = arguments.access.load == nullptr;
  if (has_memory && prepared.result_bytes != 0 && arguments.result == nullptr)
    throw Error(Status::invalid_argument, "result is NULL, but count is not 0");
  if (prepared.input_bytes != 0 && arguments.input == nullptr && arguments.collective != Collective::broadcast) {
    throw Error(Status::invalid_argument, "input is NULL, but count is not 0 (in place: input == result)");
  }
}

}  // namespace

/// Sets an alltoall's input aside where it is the result's memory. A straight list needs none: it has sent everything
/// before it stores anything. False when there is no memory.
bool Team::copy_input(Request& request) noexcept {
  if (!needs_input_copy(request.arguments)) return true;
  if (request.prepared->places[request.runs_on].straight != nullptr) return true;
  const std::size_t bytes = request.input_bytes();
  if (request.input_copy_bytes < bytes) {
    request.input_copy.reset(new (std::nothrow) std::byte[bytes]);
    request.input_copy_bytes = request.input_copy == nullptr ? 0 : bytes;
    if (request.input_copy == nullptr) return false;
  }
  if (bytes != 0) std::memcpy(request.input_copy.get(), request.arguments.input, bytes);
  return true;
}

/// Copies the lengths of a call with unequal blocks, once.
Status Team::take_blocks(Request& request) noexcept {
  CallArguments& arguments = request.arguments;
  const bool has_counts = arguments.block_counts != nullptr && request.block_counts.empty();
  if (!has_counts && (!arguments.unequal || request.unequal != nullptr)) return Status::ok;
  try {
    if (has_counts) {
      request.block_counts = read_block_counts(arguments, ranks());
      arguments.block_counts = request.block_counts.data();
      arguments.count = std::accumulate(request.block_counts.begin(), request.block_counts.end(), std::size_t{0});
      return Status::ok;
    }
    request.unequal = read_blocks(arguments, ranks(), members_.rank());
    return Status::ok;
  } catch (const Error& error) {
    set_last_error(error.what());
    return error.status();
  } catch (const std::exception& error) {
    set_last_error(error.what());
    return Status::no_resource;
  }
}

Prepared* Team::prepare(Request& request, Status& status) noexcept {
  status = take_blocks(request);
  if (status != Status::ok) return nullptr;
  try {
    if (last_prepared_ == nullptr || !same_call(last_prepared_->arguments, request.arguments, ranks())) {
      const CancellationHeld held;
      last_prepared_ = plans_.find(request.arguments, in_flight_ == 0);
    }
    check_buffers(request.arguments, *last_prepared_);
    return last_prepared_;
  } catch (const Error& error) {
    status = error.status();
    set_last_error(error.what());
  } catch (const std::exception& error) {
    status = Status::no_resource;
    set_last_error(error.what());
  }
  return nullptr;
}

CallBuffers Team::buffers_of(const Request& request, bool by_value) const noexcept {
  const Prepared& prepared = *request.prepared;
  const CallArguments& arguments = request.arguments;
  CallBuffers buffers;
  buffers.salt = request.salt;
  const bool broadcast = arguments.collective == Collective::broadcast;
  const void* input = broadcast ? arguments.result : arguments.input;
  if (!by_value && needs_input_copy(arguments)) input = request.input_copy.get();
  buffers.input = reinterpret_cast<std::uintptr_t>(input) - static_cast<std::uintptr_t>(prepared.input_shift_bytes);
  buffers.result =
      reinterpret_cast<std::uintptr_t>(arguments.result) - static_cast<std::uintptr_t>(prepared.result_shift_bytes);
  if (arguments.access.load != nullptr) buffers.access = &arguments.access;
  // Then everything moves by value: where the buffers lie does not matter.
  if (by_value || buffers.access != nullptr) return buffers;
  if (request.unequal != nullptr) buffers.blocks = &request.unequal->blocks;
  if (request.input_bytes() != 0) {
    if (const auto offset = context_.reachable(input, request.input_bytes())) {
      buffers.input_reachable = true;
      buffers.input_offset = *offset - prepared.input_shift_bytes;
    }
  }
  if (request.result_bytes() != 0) {
    if (const auto offset = context_.reachable(arguments.result, request.result_bytes())) {
      buffers.result_reachable = true;
      buffers.result_offset = *offset - prepared.result_shift_bytes;
    }
  }
  return buffers;
}

/// `kind` is that of the prepared call, salted, and marked if the call is only prepared.
void Team::write_board(const Prepared& prepared, std::uint64_t kind, std::uint64_t sequence) noexcept {
  torii::write_board(*own_control_, {sequence, prepared.board_count, kind, prepared.arguments.root});
}

/// Gives the request its number and its channel.
void Team::take_place(Request& request) noexcept {
  if (request.channel >= 0) {
    request.salt = request.salt_prepared + 2 * request.starts_refused;
    request.runs_on = static_cast<std::size_t>(request.channel);
    request.sequence = persistent_sequence(request.runs_on, ++channels_[request.runs_on]->starts);
    return;
  }
  request.salt = history_.salt();
  history_.add(request.prepared->shape.signature);
  request.sequence = ++sequence_;
  request.runs_on = next_channel_;
  if (++next_channel_ == shared_channels_) next_channel_ = 0;
}

/// Puts the request's plan in place, and makes room in the queue where it has to wait.
Status Team::make_ready(Request& request) noexcept {
  const CancellationHeld held;
  try {
    plans_.install_on(*request.prepared, request.runs_on, *this);
    if (Channel& channel = *channels_[request.runs_on]; channel.current != nullptr) channel.queue.push_back(&request);
    return Status::ok;
  } catch (const Error& error) {
    set_last_error(error.what());
    if (poisoned_) return error.status();  // learnt while staging was recycled: the cause, told once
    return failed_.is_set() ? adopt_failure() : fail(error.status(), members_.rank(), error.what());
  } catch (const std::exception& error) {
    return fail(Status::no_resource, members_.rank(), error.what());
  }
}

Status Team::start(Request& request) noexcept {
  request.team = this;
  if (context_.is_forked_child()) {
    set_last_error("this process was forked from the one that made the context: it may only exec or exit");
    return Status::invalid_argument;
  }
  if (poisoned_ || failed_.is_set()) return adopt_failure();
  Status status = Status::ok;
  request.prepared = prepare(request, status);
  if (request.prepared == nullptr) {
    ++request.starts_refused;
    note_refusal(++sequence_, last_error());
    return status;
  }
  take_place(request);
  write_board(*request.prepared, salted(request.prepared->board_kind, request.salt), request.sequence);
  if (request.arguments.count == 0 && request.arguments.collective != Collective::barrier &&
      request.unequal == nullptr) {
    request.state = Request::State::done;
    request.status = Status::ok;
    if (in_flight_ == 0) own_control_->completed.store(sequence_, std::memory_order_release);
    return Status::ok;
  }
  ++in_flight_;  // before the plan is put in place: calls that end meanwhile must not count this one as ended
  Channel& channel = *channels_[request.runs_on];
  if (channel.current != nullptr || request.prepared->places.size() <= request.runs_on ||
      request.prepared->places[request.runs_on].plan == nullptr) {
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
                    " bytes for a copy of the input of an alltoall in place");
  }
  request.state = Request::State::queued;
  if (channel.current == nullptr) start_on(channel, request);
  return Status::ok;
}

Status Team::submit(Request& request) noexcept {
  const CancellationHeld held(context_.several_nodes());
  const Inside inside(busy_, in_background_);
  return start(request);
}

Status Team::run(Request& request) noexcept {
  const CancellationHeld held(context_.several_nodes());
  const Inside inside(busy_, in_background_);
  const Status status = start(request);
  return status == Status::ok ? run_to_end(request) : status;
}

void Team::start_on(Channel& channel, Request& request) noexcept {
  channel.current = &request;
  request.state = Request::State::running;
  const Prepared& prepared = *request.prepared;
  channel.awaited = prepared.places[request.runs_on].plan->unagreed;
  if (prepared.lengths != nullptr) {
    channel.awaited = std::max(channel.awaited, prepared.lengths->places[request.runs_on].plan->unagreed);
  }
  channel.agreed_members = 0;
  if (channel.awaited == 0) begin(channel, request);
}

void Team::begin(Channel& channel, Request& request) noexcept {
  if (request.prepared->lengths != nullptr) {
    if (request.unequal->is_told) return begin_blocks(channel, request);
    return begin_lengths(channel, request);
  }
  const Prepared::Place& place = request.prepared->places[request.runs_on];
  // A straight list knows addresses only. Peers may use theirs all the same: the messages are alike.
  const Straight* const straight = request.arguments.access.load != nullptr ? nullptr : place.straight.get();
  channel.execution.begin(*place.plan, request.prepared->shape, buffers_of(request, straight != nullptr), straight);
}

void Team::complete(Channel& channel, Status status) noexcept {
  Request& request = *channel.current;
  request.state = Request::State::done;
  request.status = status;
  channel.current = nullptr;
  if (--in_flight_ == 0 && status == Status::ok) own_control_->completed.store(sequence_, std::memory_order_release);
  if (agreement_->owes_end()) agreement_->tell_end(standing(request));
  if (channel.queue.empty()) return;
  Request& next = *channel.queue.front();
  channel.queue.pop_front();
  start_on(channel, next);
}

/// True when the channel's operation moved or ended, be it with a failure.
bool Team::advance(Channel& channel) noexcept {
  if (channel.awaited != 0) {
    if (!is_agreed(channel)) return false;
    begin(channel, *channel.current);
    return true;
  }
  switch (channel.execution.advance()) {
    case Execution::Progress::done:
      if (const Request& request = *channel.current; request.prepared->tells_lengths(request.unequal.get())) {
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
  fail_transport(channel.execution, *channel.current);
  return true;
}

bool Team::progress_channels() noexcept {
  bool moved = false;
  for (const auto& channel : channels_) {
    if (channel->current != nullptr && advance(*channel)) moved = true;
  }
  return moved;
}

bool Team::progress() noexcept {
  context_.background().progress(this);
  return progress_channels();
}

bool Team::still_idle(void* team) noexcept { return !static_cast<Team*>(team)->progress(); }

Status Team::wait(Request& request) noexcept {
  const CancellationHeld held(context_.several_nodes());
  const Inside inside(busy_, in_background_);
  return run_to_end(request);
}

Status Team::run_to_end(Request& request) noexcept {
  if (request.state == Request::State::done) return request.status;
  // Most calls end here, without a look at the clock or at other operations.
  Channel& own = *channels_[request.runs_on];
  for (int poll = 0; poll < kQuickPolls && own.current == &request; ++poll) {
    if (advance(own)) break;
  }
  return wait_until_done(request);
}

Status Team::wait_until_done(Request& request) noexcept {
  if (request.state == Request::State::done) return request.status;
  const CancellationHeld held;
  Waiting waiting = members_.waiting();
  while (request.state != Request::State::done) {
    if (progress()) {
      waiting.moved();
      continue;
    }
    if (waiting.is_turn_of_others()) context_.idle();
    if (!waiting.pause(&Team::still_idle, this)) continue;
    if (request.state == Request::State::done) break;  // it ended in the pause, maybe with the team's failure
    const Status status = check(waiting, request);
    if (status != Status::ok) return status;
  }
  return request.status;
}

bool Team::test(Request& request) noexcept {
  const CancellationHeld held(context_.several_nodes());
  const Inside inside(busy_, in_background_);
  if (request.state == Request::State::done) return true;
  // Between two tests others may have moved what this caller then finds done, or waiting for more.
  if (progress() || moved_by_others_) polling_.moved();
  moved_by_others_ = false;
  if (request.state != Request::State::done && polling_.poll()) {
    const CancellationHeld held_in_check;
    (void)check(polling_, request);
  }
  return request.state == Request::State::done;
}

void Team::enter_background() {
  if (in_background_ || in_flight_ == 0) return;
  in_background_ = true;
  context_.background().enter(this);
}

void Team::leave_background_when_idle() {
  if (!in_background_) return;
  {
    const Inside inside(busy_, true);
    if (in_flight_ != 0) return;
  }
  context_.background().leave(this);
  in_background_ = false;
}

bool Team::progress_in_background() noexcept {
  if (busy_.test_and_set(std::memory_order_acquire)) return false;
  const bool moved = progress_channels();
  moved_by_others_ = moved_by_others_ || moved;
  busy_.clear(std::memory_order_release);
  return moved;
}

Status Team::open_channel(Request& request) noexcept {
  const CancellationHeld held;
  const Inside inside(busy_, in_background_);
  if (context_.is_forked_child()) {
    set_last_error("this process was forked from the one that made the context: it may only exec or exit");
    return Status::invalid_argument;
  }
  if (poisoned_ || failed_.is_set()) return adopt_failure();
  Status status = Status::ok;
  // An operation that is prepared counts as a call, so that one rank alone cannot refuse it unnoticed.
  const std::uint64_t sequence = ++sequence_;
  request.salt_prepared = history_.salt();
  request.prepared = prepare(request, status);
  if (request.prepared == nullptr) {
    note_refusal(sequence, last_error());
    return status;
  }
  history_.add_prepared(request.prepared->shape.signature);
  const std::uint64_t kind = request.prepared->board_kind ^ kPreparesOnBoard;
  write_board(*request.prepared, salted(kind, request.salt_prepared), sequence);
  status = take_channel(request);
  if (status != Status::ok && !poisoned_) note_refusal(sequence, last_error());
  if (status == Status::ok && in_flight_ == 0) own_control_->completed.store(sequence_, std::memory_order_release);
  return status;
}

/// Gives a persistent operation the lowest free channel, and puts its plan in place there.
Status Team::take_channel(Request& request) noexcept {
  try {
    if (free_channels_.empty()) {
      auto added = std::make_unique<Channel>(context_.transport());
      {
        const std::lock_guard lock(channels_mutex_);
        channels_.push_back(std::move(added));
      }
      free_channels_.push_back(static_cast<int>(channels_.size()) - 1);
    }
    // Taken only when its plan is in place: until then this operation does not stand in the way of recycling.
    const int channel = free_channels_.front();
    plans_.install_on(*request.prepared, static_cast<std::size_t>(channel), *this);
    free_channels_.erase(free_channels_.begin());
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

void Team::close_channel(const Request& request) noexcept {
  if (request.channel < 0) return;
  // The lowest free channel is taken first, so ranks that free and prepare in one order agree on the channels.
  free_channels_.insert(std::lower_bound(free_channels_.begin(), free_channels_.end(), request.channel),
                        request.channel);
}

}  // namespace torii
