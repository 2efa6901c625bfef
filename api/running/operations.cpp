// SPDX-License-Identifier: Apache-2.0
// The calls of a team that start and run operations.
#include "api/running/operations.hpp"

#include "runtime/base/cancellation.hpp"

namespace torii {
Operations::Operations(const Membership& members, TeamAgreement& agreement, PlanCache& plans, PairsPlace pairs,
                       const TeamRings& rings, bool many_callers)
    : context_(members.context()),
      members_(members),
      failures_(agreement.failures()),
      board_(agreement.calls()),
      plans_(plans),
      failed_(failures_.failure_sign()),
      channels_(members.transport(), rings.shared()),
      pairs_(members, pairs, rings),
      calls_(members.control()),
      monitor_(members, failures_, board_, calls_, channels_, plans),
      copies_(members.context()),
      in_flight_(members, failures_, board_, plans, channels_, pairs_, calls_, monitor_, copies_),
      waits_(members, channels_, monitor_, in_flight_, *this, many_callers) {
  context_.attach(this);
}

void Operations::close() noexcept {
  waits_.close();
  context_.detach(this);
}

Status Operations::submit(Request& request) noexcept {
  const CancellationHeld held(waits_.several_nodes());
  const Entry entry = waits_.enter();
  if (entry.is_refused()) return entry.refuse();
  const Status status = start(request);
  if (status == Status::ok) waits_.enter_background();
  return status;
}

bool Operations::lose(int context_rank, const std::shared_ptr<const void>& writer) noexcept {
  const int member = members_.member_of(context_rank);
  if (member < 0) return true;
  bool holds = true;
  try {
    if (writer != nullptr) writers_.push_back(writer);
  } catch (const std::exception&) {
    holds = false;
  }
  if (failed_.is_set()) return holds;
  try {
    monitor_.claim(Status::peer_lost, member, members_.text(member) + " was left out of a team of survivors");
  } catch (const std::exception&) {
    monitor_.claim(Status::peer_lost, member, "a rank was left out of a team of survivors");
  }
  return holds;
}

Status Operations::cancel_all() noexcept {
  const CancellationHeld held;
  const Entry entry = waits_.enter();
  if (entry.is_refused()) return entry.refuse();
  if (in_flight_.count() == 0 && pairs_.open() == pairs_.unmet()) {
    if (pairs_.open() != 0) in_flight_.drop_pairs();
    return Status::ok;
  }
  monitor_.abort("it destroyed the team before its operations had ended");
  (void)in_flight_.adopt_failure();
  return Status::ok;
}

Status Operations::call_when_done(Request& request, torii_done_function done, void* data) noexcept {
  const CancellationHeld held;
  const Entry entry = waits_.enter();
  if (entry.is_refused()) return entry.refuse();
  if (request.state == Request::State::done) {
    done(static_cast<torii_status>(request.status), data);
  } else {
    request.on_done = done;
    request.on_done_data = data;
  }
  return Status::ok;
}

Status Operations::adopt_failure() noexcept {
  const Entry entry = waits_.enter();
  if (entry.is_refused()) return entry.refuse();
  return in_flight_.adopt_failure();
}

}  // namespace torii
