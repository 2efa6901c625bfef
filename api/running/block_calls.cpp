// SPDX-License-Identifier: Apache-2.0
// From a caller's arrays of lengths to the first message, without memory, lock or request.
#include "api/running/block_calls.hpp"

#include <exception>
#include <utility>

#include "api/calls/call_buffers.hpp"
#include "runtime/base/cancellation.hpp"

namespace torii {

bool BlockCalls::read(const CallArguments& arguments) noexcept {
  try {
    if (blocks_ == nullptr) blocks_ = std::make_unique<UnequalBlocks>();
    read_blocks(arguments, members_.ranks(), members_.rank(), *blocks_);
    return blocks_->copied_from.empty();
  } catch (const std::exception&) {
    return false;  // Operations::run() finds the same and tells it
  }
}

bool BlockCalls::begin(const CallArguments& arguments, Status& status) noexcept {
  if (!may_begin_at_once(members_.context(), failed_, team_.in_flight)) return false;
  CallKey key;
  key.collective = static_cast<int>(arguments.collective) + kOfUnequalBlocks;
  key.type = static_cast<int>(arguments.type);
  key.root = arguments.root;
  CallPlan* const call_plan = plans_.recall(key);
  const std::size_t at = team_.channels.next();
  if (call_plan == nullptr || !call_plan->is_ready_on(at)) return false;
  InstalledPlan& plan = *call_plan->on_channels[at].plan;
  if (plan.unagreed != 0 || !read(arguments)) return false;
  CallBuffers buffers;
  buffers.input = reinterpret_cast<std::uintptr_t>(arguments.input);
  buffers.result = reinterpret_cast<std::uintptr_t>(arguments.result);
  buffers.blocks = &blocks_->blocks;
  if (!blocks_->are_short) {
    find_reach(arguments.input, blocks_->input_bytes, arguments.result, blocks_->result_bytes, *call_plan,
               members_.context(), buffers);
  }
  BegunCall begun = take_next_place(*call_plan, team_.channels, team_.calls);
  begun.blocks = &blocks_;
  buffers.salt = begun.salt;
  Execution& execution = team_.channels[at].execution;
  execution.begin(plan, call_plan->shape, buffers);
  if (ends_in_first_polls(execution, failed_.is_record())) {
    end_at_once(team_.calls, team_.in_flight);
    status = Status::ok;
    return true;
  }
  status = go_on(begun, arguments.input, arguments.result, team_);
  return true;
}

bool BlockCalls::run(const CallArguments& arguments, Status& status) noexcept {
  const CancellationHeld held(members_.several_nodes());
  TeamUse& use = team_.waits.use();
  if (!use.is_last_caller() || use.marks() != 0) return false;
  use.set(TeamUse::kCalled);
  const bool is_run = begin(arguments, status);
  use.set(0);
  return is_run;
}

[[gnu::noinline]] Status go_on(const BegunCall& begun, const void* input, void* result,
                               const TeamCalls& team) noexcept {
  CallPlan& call_plan = begun.call_plan;
  Request request;
  if (begun.blocks != nullptr) request.unequal = std::move(*begun.blocks);
  request.arguments = call_plan.arguments;
  request.arguments.input = input;
  request.arguments.result = result;
  request.arguments.access = {};  // the call for which the plan was made may have had some
  request.arguments.timeout_ns = 0;
  request.call_plan = &call_plan;
  request.runs_on = begun.channel;
  request.sequence = team.calls.sequence();
  request.salt = begun.salt;
  request.state = Request::State::running;
  Channel& own = team.channels[begun.channel];
  own.current = &request;
  team.in_flight.add(request);
  const Status status = team.waits.resume(request);
  if (begun.blocks != nullptr) *begun.blocks = std::move(request.unequal);
  return status;
}

}  // namespace torii
