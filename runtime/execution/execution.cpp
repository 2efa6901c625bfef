// SPDX-License-Identifier: Apache-2.0
// Selects the schedule of a call.
#include "runtime/execution/execution.hpp"

namespace torii {
namespace {

/// The peer that leaves a call without room in the outbox.
int peer_of_outbox(const RunningCall& call) noexcept {
  const SendEnd* const ring = call.plan->rings->outbox().awaited().ring;
  return ring == nullptr ? -1 : ring->peer;
}

}  // namespace

template <class Host>
void BasicExecution<Host>::begin(InstalledPlan& plan, const CallShape& shape, const CallBuffers& buffers,
                                 const LinearProgram* program) noexcept {
  call_.buffers = buffers;
  if (program != nullptr) {
    begin_linear(plan, shape, *program, buffers.input, buffers.result, buffers.salt);
    call_.buffers.user = buffers.user;
    return;
  }
  call_.take_up(plan, shape, buffers.salt);
  linear_.leave();
  if (plan.plan.exchange.exists()) {
    pairwise_.begin();
  } else {
    call_.count_turn();
    lanes_.begin();
  }
}

template <class Host>
Progress BasicExecution<Host>::advance() noexcept {
  if (call_.plan->remote || call_.on_rings.lacks_room) {
    if (call_.on_rings.lacks_room) {
      const bool is_exchange = call_.plan->plan.exchange.exists();
      call_.on_rings.lacks_room = !(is_exchange ? pairwise_.claim_extent() : call_.claim_extent());
      return call_.on_rings.lacks_room ? Progress::idle : Progress::moved;
    }
    call_.note(call_.transport.progress(), -1);
    if (call_.status != Status::ok) return Progress::idle;
  }
  if (linear_.runs()) return linear_.advance(call_);
  return call_.plan->plan.exchange.exists() ? pairwise_.advance() : lanes_.advance();
}

template <class Host>
Stall BasicExecution<Host>::stall() const {
  if (call_.plan == nullptr) return {};
  if (call_.on_rings.lacks_room) return {.peer = peer_of_outbox(call_), .label = "its outbox"};
  if (linear_.runs()) return linear_.stall();
  return call_.plan->plan.exchange.exists() ? pairwise_.stall() : lanes_.stall();
}

template <class Host>
bool BasicExecution<Host>::awaits(int peer) const noexcept {
  if (call_.plan == nullptr) return false;
  if (call_.on_rings.lacks_room) return peer_of_outbox(call_) == peer;
  if (linear_.runs()) return linear_.awaits(peer);
  return call_.plan->plan.exchange.exists() ? pairwise_.awaits(peer) : lanes_.awaits(peer);
}

template class BasicExecution<RealHost>;
template class BasicExecution<ModelledHost>;

}  // namespace torii
