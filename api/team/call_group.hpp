// SPDX-License-Identifier: Apache-2.0
// A group of calls: they join it one by one, and it makes all of them at its end.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/calls/packed_calls.hpp"
#include "api/team/scratch.hpp"
#include "api/team/team.hpp"

namespace torii {

/// For one thread at a time. It keeps its memory for the next group.
class CallGroup {
 public:
  /// Reads the lengths of unequal blocks; nothing else of the caller's arrays is read later. Throws
  /// Error{invalid_argument} and std::bad_alloc; the group is then refused.
  void add(const CallDescription& call, const Membership& members);
  /// A call for the group was refused: so is the group, as one call of this rank. The first reason counts.
  void refuse(Status status, const char* reason) noexcept;
  /// Makes the calls in their order, neighbours together where packed_calls.hpp says so, and waits for all of them. The
  /// first bad status, with last_error(). The group is empty afterwards.
  Status run(Team& team) noexcept;

 private:
  /// A call, or several that run as one over a packed copy.
  struct Unit {
    std::span<const GroupCall> calls;
    std::byte* memory = nullptr;  ///< of the packed copy
    std::unique_ptr<Request> request;
  };
  Status run_units(Team& team);
  void make_units(Team& team);
  void check_units(Team& team);
  void clear() noexcept;

  std::vector<GroupCall> calls_;
  std::vector<Unit> units_;
  std::size_t in_flight_most_ = 2;  ///< units
  Scratch scratch_;
  Status refused_ = Status::ok;
  std::string reason_;
};

}  // namespace torii
