// SPDX-License-Identifier: Apache-2.0
// An ordered set of ranks with a topology: the calls of the interface.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/agreement/membership.hpp"
#include "api/agreement/team_agreement.hpp"
#include "api/agreement/trouble.hpp"
#include "api/calls/last_error.hpp"
#include "api/calls/plan_maker.hpp"
#include "api/calls/request.hpp"
#include "api/calls/team_options.hpp"
#include "api/context/context.hpp"
#include "api/installation/plan_cache.hpp"
#include "api/installation/team_memory.hpp"
#include "api/running/operations.hpp"
#include "runtime/plan/leaves.hpp"
#include "runtime/rings/channel_rings.hpp"

namespace torii {

/// How many channels operations share. Throws Error{invalid_argument}.
int shared_channels_of(const TeamOptions& options, const Settings& settings);

/// How long a wait without progress may last. Throws Error{invalid_argument}.
std::int64_t deadline_of(const TeamOptions& options, const Settings& settings);

class Team final {
 public:
  /// Ranks of equal colour, ordered by (key, rank); nullptr for colour -1. Collective over this team.
  std::unique_ptr<Team> split(int color, int key, const TeamOptions& options);
  /// For split(): Bootstrap::decide() over this team's members.
  bool decide_split(bool agreed);
  /// The living members of a poisoned team, but those that the options leave out. Collective over them. `trouble`: why
  /// this rank's call makes no sense, which fails the others' calls too.
  std::unique_ptr<Team> survivors(const TeamOptions& options, const Trouble& trouble);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int rank() const noexcept { return members_.rank(); }
  int ranks() const noexcept { return members_.ranks(); }
  Context& context() noexcept { return members_.context(); }
  const Membership& members() const noexcept { return members_; }
  const TeamHealth& health() const noexcept { return operations_.health(); }
  const Topology& topology() const noexcept { return maker_.topology(); }

  /// The calls of the team.
  Operations& operations() noexcept { return operations_; }
  /// Waits::wait() for a request of which this call keeps the memory. A request that has started must not be left
  /// behind because another caller, against the rules, is inside.
  void wait_to_end(Request& request) noexcept;

  /// The owner leaves the team while its requests are still there. Operations in flight end with status `aborted`, and
  /// the members learn that this rank makes no more calls. Nothing may be started afterwards.
  Status leave() noexcept;
  /// Sets last_error() to why the team failed: for requests that ended with the team, before anybody waited for them.
  void tell_cause() const noexcept;
  /// Agrees with all members on which leaves each has, and keeps the intervals for as long as the team lives; equal
  /// ones have one address. Collective, blocking. Throws Error{invalid_argument} with the same text on all members if
  /// the claims do not fit together, and the Error of the exchange.
  const LeafIntervals& agree_on_leaves(const LeafClaim& own);

 private:
  /// The memory of all members was taken for up to `ranks_reserved` ranks and so many channels.
  Team(Context& context, const TeamOptions& options, std::vector<Member> members, int ranks_reserved);
  friend class TeamFactory;

  Membership members_;
  std::unique_ptr<TeamAgreement> agreement_;
  TeamMemory memory_;
  TeamRings rings_;
  PlanMaker maker_;
  std::vector<std::unique_ptr<const LeafIntervals>> leaves_;  ///< to which calls and plans point
  PlanCache plans_;
  Operations operations_;
  const bool follows_caches_;   ///< TeamOptions::follows_caches
  std::mutex survivors_mutex_;  ///< held by a thread that asks for survivors
  bool survivors_made_ = false;
  bool owns_memory_ = false;  ///< all members have made their object: until then no member puts or departs
};

}  // namespace torii
