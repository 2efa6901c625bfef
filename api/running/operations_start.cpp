// SPDX-License-Identifier: Apache-2.0
// From a call to an operation that runs: call plan, number, channel, installed plan, buffers.
#include <algorithm>
#include <memory>
#include <utility>

#include "api/calls/call_buffers.hpp"
#include "api/calls/leaf_folding.hpp"
#include "api/running/caught.hpp"
#include "api/running/operations.hpp"
#include "runtime/base/cancellation.hpp"

namespace torii {
namespace {

/// The call plan that `find` finds, if the request's buffers fit it; otherwise nullptr, and the status.
template <class Find>
auto checked(Request& request, Status& status, const Membership& members, Find&& find) noexcept -> decltype(find()) {
  decltype(find()) call_plan = nullptr;
  const Status outcome = caught([&] {
    take_blocks(request, members);
    call_plan = find();
    check_buffers(request.call, *call_plan);
    if (const LeafSource* const leaves = request.call.leaves()) check_leaf_stride(*leaves, *call_plan, members.rank());
  });
  if (outcome == Status::ok) return call_plan;
  status = outcome;
  return nullptr;
}

/// The team fails, for the reason in last_error().
Status fail_at(int member, Status status, InFlight& in_flight) noexcept {
  std::string reason;
  (void)caught([&] { reason = last_error(); });
  return in_flight.fail(status, member, reason);
}

void give_back_operands(Request& request, ArenaCopies& copies) noexcept {
  copies.give_back(std::exchange(request.copies.operands, nullptr));
}

/// Before the call counts as made: if a leaf cannot be had, this rank refuses the call. The caller's function may reach
/// a cancellation point.
[[gnu::noinline]] Status fold_leaves_of(Request& request, ArenaCopies& copies, int rank) noexcept {
  const CancellationHeld held(request.call.has_functions());
  const Status outcome = caught([&] { fold_leaves(request, copies, rank); });
  if (outcome != Status::ok) give_back_operands(request, copies);
  return outcome;
}

}  // namespace

std::unique_ptr<const CallPlan> Operations::prepare(Request& request, Status& status) noexcept {
  const Entry entry = waits_.enter();
  if (entry.is_refused()) {
    status = entry.refuse();
    return nullptr;
  }
  const CancellationHeld held;
  std::unique_ptr<const CallPlan> fresh;
  (void)checked(request, status, members_, [&] { return (fresh = plans_.make(request.call)).get(); });
  return status == Status::ok ? std::move(fresh) : nullptr;
}

bool Operations::may_make(Request& request, Status& status) noexcept {
  const Entry entry = waits_.enter();
  if (entry.is_refused()) {
    status = entry.refuse();
    return false;
  }
  return prepare_inside(request, status) != nullptr;
}

CallPlan* Operations::prepare_inside(Request& request, Status& status) noexcept {
  return checked(request, status, members_, [&] {
    // Block counts are compared one by one, so those calls take the longer way. So do calls without the function that
    // they need, which find() refuses: specs do not tell of functions.
    const bool may_be_known = request.call.block_counts() == nullptr && !request.call.lacks_function();
    CallPlan* const known = may_be_known ? find_plan(request.call.spec) : nullptr;
    if (known != nullptr && known->leaves == request.call.intervals()) return known;
    const CancellationHeld held;
    last_call_plan_ = nullptr;  // it may be dropped
    return last_call_plan_ = plans_.find(request.call);
  });
}

/// Installs the request's plan if that can be done now, and makes room in the queue if the request has to wait.
Status Operations::make_ready(Request& request) noexcept {
  const CancellationHeld held;
  const Status outcome = caught([&] {
    (void)plans_.make_ready_on(*request.call_plan, request.runs_on);
    if (Channel& channel = channels_[request.runs_on]; channel.current != nullptr) channel.queue.push_back(&request);
  });
  if (outcome == Status::ok) return outcome;
  return failed_.is_set() ? in_flight_.adopt_failure() : fail_at(members_.rank(), outcome, in_flight_);
}

Status Operations::cancel(Request& request, bool& is_cancelled) noexcept {
  is_cancelled = false;
  const Entry entry = waits_.enter();
  if (entry.is_refused()) return entry.refuse();
  is_cancelled = request.state == Request::State::running && in_flight_.withdraw(request);
  return Status::ok;
}

Status Operations::start(Request& request) noexcept {
  if (request.pair != nullptr) return in_flight_.start_pair(request, has_failed());
  Status status = Status::ok;
  // First, so that a call which this rank refuses is refused whether or not others have failed the team by then.
  request.call_plan = prepare_inside(request, status);
  if (has_failed()) return request.call_plan == nullptr ? status : in_flight_.adopt_failure();
  if (request.call_plan != nullptr && request.call.leaves() != nullptr) {
    status = fold_leaves_of(request, copies_, members_.rank());
  }
  if (status != Status::ok) {
    ++request.starts_refused;
    // Peers of a persistent operation wait at a place of its own, where no notice of a refused call reaches them.
    if (request.call_plan != nullptr && request.channel >= 0) {
      return fail_at(members_.rank(), status, in_flight_);
    }
    note_refusal(calls_.count(), last_error());
    return status;
  }
  calls_.place(request, *request.call_plan, channels_);
  const CallSpec& spec = request.call.spec;
  if (spec.count == 0 && spec.collective != Collective::barrier && request.unequal == nullptr) {
    in_flight_.end(request, Status::ok);
    if (in_flight_.count() == 0) calls_.end_all();
    return Status::ok;
  }
  in_flight_.add(request);
  Channel& channel = channels_[request.runs_on];
  if (channel.current != nullptr || !request.call_plan->is_ready_on(request.runs_on)) {
    status = make_ready(request);
    if (status != Status::ok) {
      in_flight_.take_back(request);
      give_back_operands(request, copies_);
      return status;
    }
  }
  // An operation that awaits its rings does this when it has them: whether it needs a copy depends on its program.
  request.lacks_copy = !request.call_plan->is_ready_on(request.runs_on);
  if (!request.lacks_copy && !copy_input(request)) {
    in_flight_.take_back(request);
    give_back_operands(request, copies_);
    if (!channel.queue.empty() && channel.queue.back() == &request) channel.queue.pop_back();
    return in_flight_.fail_without_copy(request);
  }
  request.state = Request::State::queued;
  if (channel.current == nullptr) in_flight_.start_on(channel, request);
  return Status::ok;
}

Status Operations::open_channel(Request& request) noexcept {
  const CancellationHeld held;
  const Entry entry = waits_.enter();
  if (entry.is_refused()) return entry.refuse();
  Status status = Status::ok;
  request.call_plan = prepare_inside(request, status);
  if (has_failed()) return request.call_plan == nullptr ? status : in_flight_.adopt_failure();
  // An operation that is prepared counts as a call, so that one rank alone cannot refuse it unnoticed.
  const std::uint64_t sequence = calls_.count();
  request.salt_prepared = calls_.history().salt();
  if (request.call_plan == nullptr) {
    note_refusal(sequence, last_error());
    return status;
  }
  calls_.history().add_prepared(request.call_plan->shape.signature);
  calls_.record({request.call_plan, 0, sequence, request.salt_prepared}, kPreparesInRecord);
  status = caught([&] {
    CallPlan& call_plan = *std::exchange(request.call_plan, nullptr);  // each start finds it again
    const auto end_use = [](CallPlan* used) { --used->users; };
    ++call_plan.users;
    const std::unique_ptr<CallPlan, decltype(end_use)> in_use(&call_plan, end_use);
    const RingSizes needed = plans_.own_rings_of(call_plan);
    PersistentRings& rings = plans_.own_rings();
    const int free =
        channels_.lowest_free([&](int one) { return rings.has_room(static_cast<std::size_t>(one), needed); });
    const auto channel = static_cast<std::size_t>(free);
    rings.check(channel);
    channels_.take(free);  // although there may be no memory here: the other members have taken it
    rings.open(channel, needed);
    request.channel = free;
  });
  if (status != Status::ok) note_refusal(sequence, last_error());
  if (status == Status::ok && in_flight_.count() == 0) calls_.end_all();
  return status;
}

Status Operations::close_channel(const Request& request) noexcept {
  if (request.channel < 0) return Status::ok;
  const Entry entry = waits_.enter();
  if (entry.is_refused()) return entry.refuse();
  channels_.give_back(request.channel);
  return Status::ok;
}

void Operations::count_refusal(const char* reason) noexcept {
  const Entry entry = waits_.enter();
  if (!entry.is_refused() && !has_failed()) note_refusal(calls_.count(), reason);
}

/// Call number `sequence` of this rank was refused. Between nodes the notice leaves now: this rank may not be in a call
/// again for long.
void Operations::note_refusal(std::uint64_t sequence, const char* reason) noexcept {
  board_.put_refusal(calls_.refuse(sequence, reason));
}

Status Operations::give_up(Status status, const std::string& reason) noexcept {
  const Entry entry = waits_.enter();
  if (entry.is_refused()) return entry.refuse();
  return has_failed() ? in_flight_.adopt_failure() : in_flight_.fail(status, members_.rank(), reason);
}

}  // namespace torii
