// SPDX-License-Identifier: Apache-2.0
// A blocking call like the one before it: from the caller's words to the first store in as few instructions as can be.
#include "api/team/board.hpp"
#include "api/team/team.hpp"

namespace torii {

/// Whether the call is the last one prepared, in all but its buffers. What a collective does not read may differ from
/// one call to the next; then run() finds the same preparation by a longer way.
bool Team::is_again(const PlainCall& call) const noexcept {
  if (last_prepared_ == nullptr || !last_prepared_->is_plain) return false;
  const CallArguments& last = last_prepared_->arguments;
  if (call.collective != static_cast<int>(last.collective)) return false;
  if (last.collective == Collective::barrier) return true;
  return call.count == last.count && call.type == static_cast<int>(last.type) && call.op == static_cast<int>(last.op) &&
         (call.root == last.root || !has_root(last.collective));
}

/// What it leaves to run(): teams on several nodes, which owe each other signs of life; operations in flight, behind
/// which this one may have to wait; failures and buffers that are missing, whose texts are made there.
bool Team::run_again(const PlainCall& call, Status& status) noexcept {
  if (!is_again(call) || !failed_.is_record() || in_background_ || in_flight_ != 0) return false;
  if (poisoned_ || context_.is_forked_child() || failed_.is_set()) return false;
  Prepared& prepared = *last_prepared_;
  const std::size_t at = next_channel_;
  if (prepared.places.size() <= at || prepared.places[at].straight == nullptr) return false;
  const bool broadcast = prepared.arguments.collective == Collective::broadcast;
  const void* const input = broadcast ? call.result : call.input;
  if ((prepared.input_bytes != 0 && input == nullptr) || (prepared.result_bytes != 0 && call.result == nullptr)) {
    return false;
  }
  const Prepared::Place& place = prepared.places[at];
  if (++next_channel_ == shared_channels_) next_channel_ = 0;
  const std::uint32_t salt = history_.salt();
  history_.add(prepared.shape.signature);
  write_board(prepared, salted(prepared.board_kind, salt), ++sequence_);
  Execution& execution = channels_[at]->execution;
  execution.begin_straight(
      *place.plan, prepared.shape, *place.straight,
      reinterpret_cast<std::uintptr_t>(input) - static_cast<std::uintptr_t>(prepared.input_shift_bytes),
      reinterpret_cast<std::uintptr_t>(call.result) - static_cast<std::uintptr_t>(prepared.result_shift_bytes), salt);
  for (int poll = 0; poll < kQuickPolls; ++poll) {
    if (execution.advance() != Execution::Progress::done) continue;
    own_control_->completed.store(sequence_, std::memory_order_release);
    status = Status::ok;
    return true;
  }
  status = go_on(prepared, at, call, salt);
  return true;
}

/// The call has begun and has to wait: from here on it is a request as any other.
Status Team::go_on(Prepared& prepared, std::size_t channel, const PlainCall& call, std::uint32_t salt) noexcept {
  Request request;
  request.team = this;
  request.arguments = prepared.arguments;
  request.arguments.input = call.input;
  request.arguments.result = call.result;
  request.arguments.access = {};  // the call for which it was prepared may have had some
  request.prepared = &prepared;
  request.runs_on = channel;
  request.sequence = sequence_;
  request.salt = salt;
  request.state = Request::State::running;
  Channel& own = *channels_[channel];
  own.current = &request;
  ++in_flight_;
  return wait_until_done(request);
}

}  // namespace torii
