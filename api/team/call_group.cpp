// SPDX-License-Identifier: Apache-2.0
// Makes the calls of a group.
#include "api/team/call_group.hpp"

#include <algorithm>
#include <utility>

#include "api/calls/call_buffers.hpp"
#include "api/calls/last_error.hpp"

namespace torii {
void CallGroup::add(const CallDescription& call, const Membership& members) {
  calls_.emplace_back(call);
  if (!has_unequal_blocks(call.spec)) return;
  auto request = std::make_unique<Request>(call);
  read_lengths(*request, members);
  calls_.back().request = std::move(request);
}

void CallGroup::refuse(Status status, const char* reason) noexcept {
  if (refused_ != Status::ok) return;
  refused_ = status;
  try {
    reason_ = reason;
  } catch (const std::exception&) {
    reason_.clear();
  }
}

/// Divides the calls into units. Throws the team's failure if the arena has no room for the packed copies.
void CallGroup::make_units(Team& team) {
  const int ranks = team.ranks();
  const std::span<const GroupCall> calls(calls_);
  std::size_t longest_bytes = 0;
  for (std::size_t first = 0; first < calls.size(); first += units_.back().calls.size()) {
    const std::size_t count = count_packed(calls.subspan(first), ranks, kPackingLimits);
    units_.push_back({calls.subspan(first, count), nullptr, nullptr});
    std::size_t bytes = 0;
    for (const GroupCall& call : units_.back().calls) bytes += vector_bytes(call, ranks);
    if (count > 1) longest_bytes = std::max(longest_bytes, bytes);
  }
  const std::size_t place_bytes = round_up(longest_bytes, kLineBytes);
  // One is packed while others move.
  in_flight_most_ = std::max<std::size_t>(2, team.operations().channels().shared());
  const std::size_t places = std::min(units_.size(), in_flight_most_);
  std::byte* const memory =
      longest_bytes == 0 ? nullptr : scratch_.reserve(team, places * place_bytes, "for calls of a group");
  for (std::size_t i = 0; i < units_.size(); ++i) {
    Unit& unit = units_[i];
    if (unit.calls.size() == 1) {
      GroupCall& call = calls_[static_cast<std::size_t>(unit.calls.data() - calls_.data())];
      unit.request = std::move(call.request);
      if (unit.request != nullptr) continue;
      unit.request = std::make_unique<Request>(call.call);
      continue;
    }
    check_members(unit.calls, team.rank());
    unit.memory = memory + i % in_flight_most_ * place_bytes;
    unit.request = std::make_unique<Request>(packed_call(unit.calls, unit.memory, team.members()));
  }
}

/// No call of the group may have started when one is refused. Throws the reason.
void CallGroup::check_units(Team& team) {
  for (Unit& unit : units_) {
    Status status = Status::ok;
    if (!team.operations().may_make(*unit.request, status)) throw Error(status, last_error());
  }
}

/// A unit whose memory another one needs is awaited first, so the copies stay in the caches.
Status CallGroup::run_units(Team& team) {
  Status first = Status::ok;
  std::size_t started = 0;
  std::size_t ended = 0;
  const auto end_next = [&] {
    Unit& unit = units_[ended++];
    team.wait_to_end(*unit.request);
    const Status status = unit.request->status;
    if (status == Status::ok && unit.memory != nullptr) unpack(unit.calls, unit.memory, team.members());
    if (status == Status::ok || first != Status::ok) return;
    first = status;
    team.tell_cause();
  };
  Operations& operations = team.operations();
  for (Unit& unit : units_) {
    if (started == ended + in_flight_most_) end_next();
    if (first != Status::ok) break;
    if (unit.memory != nullptr) pack(unit.calls, unit.memory, team.members());
    first = units_.size() == 1 ? operations.run(*unit.request) : operations.submit(*unit.request);
    if (first != Status::ok) break;
    ++started;
  }
  while (ended < started) end_next();
  return first;
}

Status CallGroup::run(Team& team) noexcept {
  const Hold hold = team.operations().waits().hold();
  if (hold.refusal() != Status::ok) {
    clear();
    return hold.refusal();
  }
  Status status = refused_;
  try {
    if (status != Status::ok) throw Error(status, reason_);
    make_units(team);
    check_units(team);
  } catch (const Error& error) {
    status = error.status();
    set_last_error(error.what());
  } catch (const std::exception&) {
    status = Status::no_resource;
    set_last_error("out of memory for the calls of a group");
  }
  if (status != Status::ok) {
    team.operations().count_refusal(last_error());
  } else {
    status = run_units(team);
    // Peers may still read or write the packed copies.
    if (status != Status::ok) scratch_.abandon();
  }
  clear();
  return status;
}

void CallGroup::clear() noexcept {
  calls_.clear();
  units_.clear();
  refused_ = Status::ok;
  reason_.clear();
}

}  // namespace torii
