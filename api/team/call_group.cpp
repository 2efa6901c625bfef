// SPDX-License-Identifier: Apache-2.0
// Makes the calls of a group.
#include "api/team/call_group.hpp"

#include <utility>

#include "api/team/call_buffers.hpp"
#include "api/team/last_error.hpp"

namespace torii {

void CallGroup::add(const CallArguments& arguments, const Membership& members) {
  calls_.push_back({arguments, nullptr});
  if (!arguments.unequal && arguments.block_counts == nullptr) return;
  auto request = std::make_unique<Request>();
  request->arguments = arguments;
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
  const auto padded = [](std::size_t bytes) { return round_up(bytes, kLineBytes); };
  std::size_t packed_bytes = 0;
  const std::span<const GroupCall> calls(calls_);
  for (std::size_t first = 0; first < calls.size();) {
    const std::size_t count = count_packed(calls.subspan(first), ranks);
    units_.push_back({calls.subspan(first, count), nullptr, nullptr});
    std::size_t bytes = 0;
    for (const GroupCall& call : units_.back().calls) bytes += vector_bytes(call.arguments, ranks);
    if (count > 1) packed_bytes += padded(bytes);
    first += count;
  }
  std::byte* memory = packed_bytes == 0 ? nullptr : scratch_.reserve(team, packed_bytes, "for calls of a group");
  for (Unit& unit : units_) {
    if (unit.calls.size() == 1) {
      GroupCall& call = calls_[static_cast<std::size_t>(unit.calls.data() - calls_.data())];
      unit.request = std::move(call.request);
      if (unit.request != nullptr) continue;
      unit.request = std::make_unique<Request>();
      unit.request->arguments = call.arguments;
      continue;
    }
    check_members(unit.calls, team.rank());
    unit.memory = memory;
    unit.request = std::make_unique<Request>();
    unit.request->arguments = packed_call(unit.calls, memory, team.members());
    for (const GroupCall& call : unit.calls) memory += vector_bytes(call.arguments, ranks);
    memory += padded(static_cast<std::size_t>(memory - unit.memory)) - static_cast<std::size_t>(memory - unit.memory);
  }
}

/// No call of the group may have started when one is refused. Throws the reason.
void CallGroup::check_units(Team& team) {
  for (Unit& unit : units_) {
    Status status = Status::ok;
    if (team.prepare(*unit.request, status) == nullptr) throw Error(status, last_error());
  }
}

Status CallGroup::run_units(Team& team) {
  const auto start = [&](Unit& unit) {
    if (unit.calls.size() > 1) pack(unit.calls, unit.memory, team.members());
    return units_.size() == 1 ? team.run(*unit.request) : team.submit(*unit.request);
  };
  Status first = Status::ok;
  std::size_t started = 0;
  for (Unit& unit : units_) {
    first = start(unit);
    if (first != Status::ok) break;
    ++started;
  }
  for (std::size_t i = 0; i < started; ++i) {
    Unit& unit = units_[i];
    (void)team.wait(*unit.request);
    if (unit.request->status == Status::ok) {
      if (unit.calls.size() > 1) unpack(unit.calls, unit.memory, team.members());
    } else if (first == Status::ok) {
      first = unit.request->status;
      team.tell_cause();
    }
  }
  return first;
}

Status CallGroup::run(Team& team) noexcept {
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
    team.count_refusal(last_error());
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
