// SPDX-License-Identifier: Apache-2.0
// The call plans of a team, and the plans that it has installed.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/agreement/install_board.hpp"
#include "api/agreement/install_log.hpp"
#include "api/calls/call_class.hpp"
#include "api/calls/call_plan.hpp"
#include "api/calls/plan_maker.hpp"
#include "api/calls/request.hpp"
#include "api/installation/staging_budget.hpp"

namespace torii {

class LearntChoices;
class TeamRings;

/// For the team's caller.
class PlanCache {
 public:
  /// The arguments must outlive the cache.
  PlanCache(const Membership& members, InstallBoard& board, const PlanMaker& maker, StagingBudget& staging,
            TeamRings* rings);
  ~PlanCache();
  PlanCache(const PlanCache&) = delete;
  PlanCache& operator=(const PlanCache&) = delete;

  /// Finds, fills in or makes the call plan. It stays as it is while it has users, or until the next call. Throws
  /// Error.
  CallPlan* find(const CallDescription& call);
  /// The plan of a plain call whose class was met before, filled in; nullptr: find() may know more.
  CallPlan* recall(const CallSpec& spec) noexcept;
  /// The call plan is filled in anew: writes its linear program for a channel where it had one. False: install_on().
  bool refresh_on(CallPlan& call_plan, std::size_t channel) const noexcept;
  /// A call plan of the caller's own. Throws Error.
  std::unique_ptr<const CallPlan> make(const CallDescription& call) const { return maker_.make(call); }
  /// Binds the plan, and the plan that broadcasts lengths, to a channel's standing rings, or installs them there,
  /// unless that is done. What has staging every member installs at the same call. Throws Error.
  void install_on(CallPlan& call_plan, std::size_t channel, StartWaits& waits);
  /// Compares installation `number` of that member with this rank's.
  InstallLog::Verdict verdict(int member, std::uint64_t number) noexcept {
    return installs_.compare(board_.install_word(member, number), number);
  }
  /// False while peers may not have this rank's words: they are not served when this rank has left the call.
  bool are_words_put() const noexcept { return board_.control_puts_done(); }

 private:
  using Plans = std::map<std::string, std::shared_ptr<InstalledPlan>>;
  void install_one(CallPlan& call_plan, std::size_t channel, StartWaits& waits);
  std::shared_ptr<InstalledPlan> installed_on(CallPlan& call_plan, std::size_t channel, StartWaits& waits);
  std::unique_ptr<InstalledPlan> make_plan(const CallPlan& call_plan, std::size_t channel, StartWaits& waits);
  static void drop_unused(Plans& plans) noexcept;
  void log_install(InstalledPlan& plan, const std::string& key, StartWaits& waits);
  void forget_plans() noexcept;

  const Membership& members_;
  InstallBoard& board_;
  const PlanMaker& maker_;
  StagingBudget& staging_;
  TeamRings* const rings_;  ///< nullptr: plans have staging of their own
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
  InstallLog installs_;
};

}  // namespace torii
