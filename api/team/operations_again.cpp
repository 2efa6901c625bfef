// SPDX-License-Identifier: Apache-2.0
// A blocking call like the one before it: from the caller's words to the first store in as few instructions as can be.
#include "api/team/operations.hpp"

namespace torii {
namespace {

/// Whether the call is the last one prepared, in all but its buffers. What a collective does not read may differ from
/// one call to the next; then run() finds the same preparation by a longer way.
bool is_again(const PlainCall& call, const Prepared* last_prepared) noexcept {
  if (last_prepared == nullptr || !last_prepared->is_plain) return false;
  const CallArguments& last = last_prepared->arguments;
  if (call.collective != static_cast<int>(last.collective)) return false;
  if (last.collective == Collective::barrier) return true;
  return call.count == last.count && call.type == static_cast<int>(last.type) && call.op == static_cast<int>(last.op) &&
         (call.root == last.root || !has_root(last.collective));
}

}  // namespace

/// What it leaves to run(): teams on several nodes, which owe each other signs of life; operations in flight, behind
/// which this one may have to wait; failures and buffers that are missing, whose texts are made there.
bool Operations::run_again(const PlainCall& call, Status& status) noexcept {
  if (!is_again(call, last_prepared_) || !failed_.is_record() || in_background_ || in_flight_ != 0) return false;
  if (poisoned_ || context_.is_forked_child() || failed_.is_set()) return false;
  Prepared& prepared = *last_prepared_;
  const std::size_t at = channels_.next();
  if (prepared.places.size() <= at || prepared.places[at].straight == nullptr) return false;
  const bool broadcast = prepared.arguments.collective == Collective::broadcast;
  const void* const input = broadcast ? call.result : call.input;
  if ((prepared.input_bytes != 0 && input == nullptr) || (prepared.result_bytes != 0 && call.result == nullptr)) {
    return false;
  }
  const Prepared::Place& place = prepared.places[at];
  channels_.advance_next();
  const std::uint32_t salt = calls_.history().salt();
  calls_.history().add(prepared.shape.signature);
  calls_.show(prepared, salted(prepared.board_kind, salt), calls_.count());
  Execution& execution = channels_[at].execution;
  execution.begin_straight(
      *place.plan, prepared.shape, *place.straight,
      reinterpret_cast<std::uintptr_t>(input) - static_cast<std::uintptr_t>(prepared.input_shift_bytes),
      reinterpret_cast<std::uintptr_t>(call.result) - static_cast<std::uintptr_t>(prepared.result_shift_bytes), salt);
  for (int poll = 0; poll < kQuickPolls; ++poll) {
    if (execution.advance() != Execution::Progress::done) continue;
    calls_.end_all();
    status = Status::ok;
    return true;
  }
  status = go_on(prepared, at, call, salt);
  return true;
}

/// The call has begun and has to wait: from here on it is a request as any other.
Status Operations::go_on(Prepared& prepared, std::size_t channel, const PlainCall& call, std::uint32_t salt) noexcept {
  Request request;
  request.arguments = prepared.arguments;
  request.arguments.input = call.input;
  request.arguments.result = call.result;
  request.arguments.access = {};  // the call for which it was prepared may have had some
  request.prepared = &prepared;
  request.runs_on = channel;
  request.sequence = calls_.sequence();
  request.salt = salt;
  request.state = Request::State::running;
  Channel& own = channels_[channel];
  own.current = &request;
  ++in_flight_;
  return wait_until_done(request);
}

}  // namespace torii
