// SPDX-License-Identifier: Apache-2.0
// The call plans of a team, and the plans that it has installed.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/calls/call_class.hpp"
#include "api/calls/call_plan.hpp"
#include "api/calls/plan_maker.hpp"
#include "api/calls/request.hpp"
#include "api/installation/distant_entries.hpp"
#include "api/installation/persistent_rings.hpp"
#include "api/installation/team_memory.hpp"
#include "runtime/rings/channel_rings.hpp"

namespace torii {

class LearntChoices;

/// For the team's caller.
class PlanCache {
 public:
  /// The arguments must outlive the cache.
  PlanCache(const Membership& members, const PlanMaker& maker, TeamMemory& memory, TeamRings& rings);
  ~PlanCache();
  PlanCache(const PlanCache&) = delete;
  PlanCache& operator=(const PlanCache&) = delete;

  /// Finds, fills in or makes the call plan. It stays as it is while it has users, or until the next call. Throws
  /// Error.
  CallPlan* find(const CallDescription& call);
  /// The plan of a plain call whose class was met before, filled in; nullptr: find() may know more.
  CallPlan* recall(const CallSpec& spec) noexcept;
  /// The call plan is filled in anew: writes its linear program for a channel where it had one. False: make_ready_on().
  bool refresh_on(CallPlan& call_plan, std::size_t channel) const noexcept;
  /// A call plan of the caller's own. Throws Error.
  std::unique_ptr<const CallPlan> make(const CallDescription& call) const { return maker_.make(call); }
  /// The rings that a persistent operation with this call plan needs on its channel. Equal on all members.
  RingSizes own_rings_of(const CallPlan& call_plan) const;
  PersistentRings& own_rings() noexcept { return own_rings_; }
  /// Installs the call plan on the channel if members have told where all its rings are. False: some have not yet.
  /// Waits for nobody. Throws Error.
  bool make_ready_on(CallPlan& call_plan, std::size_t channel);
  bool has_told_rings(int member, const CallPlan& call_plan, std::size_t channel) const noexcept;
  // For GoneTeam:
  std::vector<OutboxMemory> outboxes() const;
  /// Where members of other nodes write, beside the team's memory.
  std::vector<Stretch> entries() const;
  std::vector<PutOwner> take_puts();

 private:
  /// By the size of messages between nodes, and the plan's name.
  using Plans = std::map<std::pair<int, std::string>, std::shared_ptr<InstalledPlan>>;
  void install_one(CallPlan& call_plan, std::size_t channel);
  std::shared_ptr<InstalledPlan> installed_on(CallPlan& call_plan, std::size_t channel);
  std::unique_ptr<InstalledPlan> make_plan(const CallPlan& call_plan, std::size_t channel);
  /// The size of entries between nodes for a message of the call; 0 in a team on one node, where all calls of a class
  /// have one plan.
  int message_size_of(const CallPlan& call_plan) const noexcept;
  std::size_t message_bytes_of(const CallPlan& call_plan) const noexcept;
  std::size_t outbox_bytes_of(const CallPlan& call_plan, const Plan& plan) const noexcept;
  bool has_own_rings(std::size_t channel) const noexcept { return channel >= rings_.shared(); }
  static void drop_unused(Plans& plans) noexcept;

  const Membership& members_;
  const PlanMaker& maker_;
  TeamMemory& memory_;
  TeamRings& rings_;
  PersistentRings own_rings_;
  std::optional<DistantEntries> distant_;  ///< on several nodes
  /// Call plans by a hash of their calls: the last one that had it.
  static constexpr std::size_t kPlaces = 256;

  CallClass& class_of(const CallDescription& call);
  CallPlan* plan_in(CallClass& its_class, const CallDescription& call);
  static CallPlan* next_unused(CallClass& its_class, const CallSpec& spec) noexcept;
  void remember(CallPlan& call_plan) noexcept;
  template <class IsDropped>
  void drop_plans(CallClass& its_class, IsDropped&& is_dropped) noexcept;
  void drop_oldest() noexcept;

  std::vector<std::unique_ptr<CallClass>> classes_;  ///< the one that find() found last at the end
  std::array<CallPlan*, kPlaces> recent_{};          ///< of plain calls
  std::vector<Plans> plans_;                         ///< by channel
  const std::shared_ptr<LearntChoices> learnt_;      ///< by all plans
};

}  // namespace torii
