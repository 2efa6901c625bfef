// SPDX-License-Identifier: Apache-2.0
// The calls of a team that are no waits, and the threads that move its operations in the background.
#include "api/team/operations.hpp"

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
      in_flight_(members, agreement, plans, channels_, calls_, monitor_),
      polling_(members.waiting()),
      many_callers_(many_callers) {
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
  if (status != Status::ok) return status;
  run_to_end(request);
  return end_blocking(request);
}

void Operations::enter_background() {
  const Inside inside(door_, many_callers_);
  if (in_background_ || in_flight_.count() == 0) return;
  in_background_ = true;
  context_.background().enter(this);
}

Status Operations::adopt_failure() noexcept {
  const Inside inside(door_, is_shared());
  return in_flight_.adopt_failure();
}

bool Operations::progress_in_background() noexcept {
  if (!door_.try_enter()) return false;
  const bool moved = in_flight_.progress();
  door_.leave();
  return moved;
}

}  // namespace torii
