// SPDX-License-Identifier: Apache-2.0
// The entries of standing rings from members on other nodes. Their memory is taken when a plan first needs entries of a
// size from a member, and stays until the team is gone. Each sender is told where they are, in a line of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "api/agreement/membership.hpp"
#include "api/context/team_memory_pool.hpp"
#include "api/installation/team_memory.hpp"
#include "api/installation/told_places.hpp"
#include "runtime/execution/installed_plan.hpp"
#include "runtime/rings/channel_rings.hpp"

namespace torii {

/// For the team's caller. Nothing here waits.
class DistantEntries {
 public:
  /// The arguments must outlive this.
  DistantEntries(const Membership& members, TeamMemory& memory) : told_(members), team_memory_(memory) {}
  DistantEntries(const DistantEntries&) = delete;
  DistantEntries& operator=(const DistantEntries&) = delete;

  /// Takes the entries of that size which the plan's messages from other nodes need, those that are missing, and tells
  /// the senders. Throws Error{no_resource | transport}.
  void take_for(const Plan& plan, ChannelRings& rings, int size);
  bool have_left() const noexcept { return told_.have_left(); }

  /// For GoneTeam.
  const std::vector<Stretch>& memory() const noexcept { return memory_; }
  PutOwner take_puts() noexcept { return told_.take_puts(); }

 private:
  ToldPlaces told_;
  TeamMemory& team_memory_;
  std::vector<Stretch> memory_;  ///< from the arena's beginning
};

}  // namespace torii
