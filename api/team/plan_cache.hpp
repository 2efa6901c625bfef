// SPDX-License-Identifier: Apache-2.0
// The call plans of a team, and the plans that it has installed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/team/call_plan.hpp"
#include "api/team/install_log.hpp"
#include "api/team/plan_maker.hpp"
#include "api/team/staging_budget.hpp"

namespace torii {

/// For the team's caller.
class PlanCache {
 public:
  /// The arguments must outlive the cache.
  PlanCache(const Membership& members, TeamAgreement& agreement, const PlanMaker& maker, StagingBudget& staging);

  /// Finds or makes the call plan. `may_drop` says that no request points to any call plan. Throws Error.
  CallPlan* find(const CallArguments& arguments, bool may_drop);
  /// Installs the plan, and the plan that broadcasts lengths, on a channel, unless they are installed there. Every
  /// member does so at the same call. Throws Error.
  void install_on(CallPlan& call_plan, std::size_t channel, StartWaits& waits);
  /// Compares installation `number` of that member with this rank's.
  InstallLog::Verdict verdict(int member, std::uint64_t number) noexcept {
    return installs_.compare(agreement_.install_word(member, number), number);
  }

 private:
  using Plans = std::map<std::string, std::unique_ptr<InstalledPlan>>;
  void install_one(CallPlan& call_plan, std::size_t channel, StartWaits& waits);
  std::unique_ptr<InstalledPlan> make_plan(const CallPlan& call_plan, StartWaits& waits);
  void log_install(InstalledPlan& plan, const std::string& key, StartWaits& waits);
  void forget_plans() noexcept;

  const Membership& members_;
  TeamAgreement& agreement_;
  const PlanMaker& maker_;
  StagingBudget& staging_;
  std::vector<std::shared_ptr<CallPlan>> call_plans_;
  std::vector<Plans> plans_;  ///< by channel
  InstallLog installs_;
};

}  // namespace torii
