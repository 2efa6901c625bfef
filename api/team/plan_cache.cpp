// SPDX-License-Identifier: Apache-2.0
// Finds call plans, installs plans, and agrees with the members on them.
#include "api/team/plan_cache.hpp"

#include <xxhash.h>

#include <algorithm>
#include <utility>

namespace torii {
namespace {

constexpr std::size_t kPreparedMax = 64;

/// Tells the plan from all others of the team on one channel.
std::string key_of(const CallPlan& call_plan) {
  const PlanRequest& request = call_plan.selected.request;
  // The binding names all fields, so a new one does not compile until it is a part of the key.
  const auto& [segment_bytes, slots, window, one_shot, radix, common_root, lanes] = request.tuning;
  const Algorithm* algorithm = call_plan.selected.algorithm;
  return std::string(algorithm->name) + ' ' + std::string(name(request.collective)) + ' ' +
         std::to_string(request.root) + ' ' + std::to_string(static_cast<int>(call_plan.widening)) + ' ' +
         std::to_string(segment_bytes) + ' ' + std::to_string(slots) + ' ' + std::to_string(window) + ' ' +
         std::to_string(one_shot) + ' ' + std::to_string(radix) + ' ' + std::to_string(common_root) + ' ' +
         std::string(name(request.determinism)) + ' ' +
         std::to_string(request.leaves == nullptr ? 0 : request.leaves->digest()) + ' ' +
         std::string(lanes.begin(), lanes.end());
}

}  // namespace

PlanCache::PlanCache(const Membership& members, TeamAgreement& agreement, const PlanMaker& maker,
                     StagingBudget& staging)
    : members_(members), agreement_(agreement), maker_(maker), staging_(staging) {}

CallPlan* PlanCache::find(const CallArguments& arguments, bool may_drop) {
  for (const auto& call_plan : call_plans_) {
    if (same_call(call_plan->arguments, arguments, members_.ranks())) return call_plan.get();
  }
  auto fresh = maker_.make(arguments);
  Counters::add(members_.transport().counters().call_plans);
  // The plans of dropped call plans stay installed. Requests in flight point to call plans, so then none is dropped.
  if (call_plans_.size() >= kPreparedMax && may_drop) {
    call_plans_.erase(call_plans_.begin(), call_plans_.begin() + kPreparedMax / 2);
  }
  call_plans_.push_back(std::move(fresh));
  return call_plans_.back().get();
}

void PlanCache::install_on(CallPlan& call_plan, std::size_t channel, StartWaits& waits) {
  install_one(call_plan, channel, waits);
  if (call_plan.lengths == nullptr) return;
  install_one(*call_plan.lengths, channel, waits);
  // Making room for the second may have taken the first away, and there is room for two.
  install_one(call_plan, channel, waits);
}

void PlanCache::install_one(CallPlan& call_plan, std::size_t channel, StartWaits& waits) {
  if (call_plan.on_channels.size() <= channel) call_plan.on_channels.resize(channel + 1);
  if (plans_.size() <= channel) plans_.resize(channel + 1);
  CallPlan::OnChannel& installed = call_plan.on_channels[channel];
  if (installed.plan != nullptr) return;
  const std::string key = key_of(call_plan);
  auto found = plans_[channel].find(key);
  if (found == plans_[channel].end()) {
    auto fresh = make_plan(call_plan, waits);
    log_install(*fresh, key + " on channel " + std::to_string(channel), waits);
    found = plans_[channel].emplace(key, std::move(fresh)).first;
  }
  installed.plan = found->second.get();
  const CallShape& shape = call_plan.shape;
  installed.program = compile_linear(*installed.plan, shape.layout, shape.unit_bytes, shape.element_bytes);
}

/// Assigns staging to the plan.
std::unique_ptr<InstalledPlan> PlanCache::make_plan(const CallPlan& call_plan, StartWaits& waits) {
  const PlanRequest& request = call_plan.selected.request;
  const std::size_t segment_bytes = request.tuning.segment_bytes;
  const Algorithm* algorithm = call_plan.selected.algorithm;
  Plan plan = algorithm->plan(request, members_.rank());
  const std::size_t bytes =
      staging_shape(plan, segment_bytes, call_plan.widening, members_.several_nodes()).total_bytes;
  if (bytes > staging_.bytes()) {
    throw Error(Status::no_resource, "the plan of " + std::string(algorithm->name) + " needs " + std::to_string(bytes) +
                                         " bytes of staging, a team of " + std::to_string(members_.ranks()) +
                                         " ranks has " + std::to_string(staging_.bytes()) +
                                         "; make TORII_SEGMENT or TORII_SLOTS smaller, or TORII_ARENA larger where "
                                         "the fabric pins it");
  }
  if (!staging_.has_room(bytes)) staging_.recycle(waits, [this] { forget_plans(); });
  staging_.reserve(bytes);
  Placement placement;
  placement.transport = &members_.transport();
  for (const Member& member : members_.all()) {
    placement.context_ranks.push_back(member.context_rank);
    placement.staging_offsets.push_back(staging_.next_offset(member));
  }
  placement.plan_of = [&](int rank) { return algorithm->plan(request, rank); };
  auto fresh = std::make_unique<InstalledPlan>(install(std::move(plan), segment_bytes, call_plan.widening, placement));
  staging_.take(bytes);
  return fresh;
}

/// `key` tells the plan from all others of the team.
void PlanCache::log_install(InstalledPlan& plan, const std::string& key, StartWaits& waits) {
  // A word may be overwritten when all members agree on it.
  if (const std::uint64_t next = installs_.number() + 1; next > InstallLog::kWords) {
    for (int member = 0; member < members_.ranks(); ++member) {
      waits.wait_for(member, "to install a plan",
                     [&] { return verdict(member, next - InstallLog::kWords) == InstallLog::Verdict::agrees; });
    }
  }
  const std::string text = key + " at " + std::to_string(staging_.used_bytes());
  const std::uint64_t number = installs_.add(XXH3_64bits(text.data(), text.size()));
  plan.unagreed = number;
  Counters::add(members_.transport().counters().installed_plans);
  agreement_.put_install(number, installs_.word(number));
}

/// Empties what call plans have on channels, and removes nothing: the one for which room is made is among them.
void PlanCache::forget_plans() noexcept {
  for (Plans& plans : plans_) plans.clear();
  for (auto& call_plan : call_plans_) {
    for (CallPlan::OnChannel& installed : call_plan->on_channels) installed = {};
    if (call_plan->lengths == nullptr) continue;
    for (CallPlan::OnChannel& installed : call_plan->lengths->on_channels) installed = {};
  }
}

}  // namespace torii
