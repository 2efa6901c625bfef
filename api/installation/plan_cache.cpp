// SPDX-License-Identifier: Apache-2.0
// Finds call plans.
#include "api/installation/plan_cache.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/execution/learnt_choices.hpp"

namespace torii {
namespace {

constexpr std::size_t kClassesMax = 256;
/// Call plans of a class that are kept for calls by turns, be it of other lengths or of other types.
constexpr std::size_t kKeptInClass = 8;
/// To fill a plan in is quicker than to make another, and lengths that come once need no plan of their own. So a class
/// has one more plan each time that the number of fillings has doubled, from 4 on.
std::size_t kept_in(const CallClass& its_class) noexcept {
  const auto doublings = static_cast<std::size_t>(std::bit_width(its_class.fillings / 2));
  return std::clamp<std::size_t>(doublings, 1, kKeptInClass);
}
/// So many of a class's plans may be left over from calls that were in flight at once.
constexpr std::size_t kLeftInClass = 32;

/// Where a plain call's plan is looked for: by its length, or by a number for all lengths of like size.
std::size_t place_of(const CallSpec& spec, std::uint64_t length) noexcept {
  const std::uint64_t words = static_cast<std::uint64_t>(spec.marks) << 56 ^ spec.content ^
                              static_cast<std::uint64_t>(spec.collective) << 48 ^
                              static_cast<std::uint64_t>(spec.type) << 40 ^ static_cast<std::uint64_t>(spec.op) << 32 ^
                              static_cast<std::uint64_t>(spec.root) << 16 ^ length;
  return static_cast<std::size_t>(words * 0x9e3779b97f4a7c15ULL >> 56);
}
/// No count is so large.
std::uint64_t like_length(std::uint64_t count) noexcept { return ~static_cast<std::uint64_t>(std::bit_width(count)); }

/// Whether plans of the two calls have kernels and ends alike, so that one is filled in for the other by its lengths.
bool are_alike(const CallSpec& a, const CallSpec& b) noexcept {
  return a.type == b.type && a.op == b.op && a.user_bytes == b.user_bytes && (a.tag == 0) == (b.tag == 0) &&
         (a.count == 0) == (b.count == 0);
}

bool differs_in_length_alone(const CallSpec& spec, const CallPlan& call_plan) noexcept {
  CallSpec like = call_plan.spec;
  like.count = spec.count;
  return like == spec && call_plan.counts.contains(spec.count);
}

/// The hashes of block counts are compared first.
bool serves(const CallPlan& call_plan, const CallDescription& call) noexcept {
  if (call_plan.spec != call.spec) return false;
  const std::vector<std::size_t>& counts = call_plan.block_counts;
  return counts.empty() || std::equal(counts.begin(), counts.end(), call.block_counts());
}

}  // namespace

PlanCache::PlanCache(const Membership& members, const PlanMaker& maker, TeamMemory& memory, TeamRings& rings)
    : members_(members),
      maker_(maker),
      memory_(memory),
      rings_(rings),
      own_rings_(members, memory, rings),
      learnt_(std::make_shared<LearntChoices>()) {
  if (members_.several_nodes()) distant_.emplace(members_, memory_);
}

PlanCache::~PlanCache() = default;

CallPlan* PlanCache::find(const CallDescription& call) {
  CallClass& its_class = class_of(call);
  CallPlan* const call_plan = plan_in(its_class, call);
  remember(*call_plan);
  return call_plan;
}

/// So that recall() finds it, if it is that of a plain call.
void PlanCache::remember(CallPlan& call_plan) noexcept {
  const CallSpec& spec = call_plan.spec;
  if (!call_plan.counts.contains(spec.count)) return;
  recent_[place_of(spec, spec.count)] = &call_plan;
  recent_[place_of(spec, like_length(spec.count))] = &call_plan;
}

CallPlan* PlanCache::recall(const CallSpec& spec) noexcept {
  static_assert(kPlaces == 256, "place_of() gives eight bits");
  CallPlan* const same = recent_[place_of(spec, spec.count)];
  if (same != nullptr && same->spec == spec && same->is_plain) return same;
  CallPlan* const alike = recent_[place_of(spec, like_length(spec.count))];
  if (alike == nullptr || !differs_in_length_alone(spec, *alike)) return nullptr;
  CallPlan* const free = next_unused(*alike->its_class, alike->spec);
  if (free == nullptr) return nullptr;
  ++free->its_class->fillings;
  maker_.set_count(*free, spec.count);
  remember(*free);
  return free;
}

/// A plan of the class to fill in for a call like this one, each time another plan. nullptr if no plan is free, or if
/// the class has room for more plans.
CallPlan* PlanCache::next_unused(CallClass& its_class, const CallSpec& spec) noexcept {
  const std::size_t count = its_class.call_plans.size();
  if (count < kept_in(its_class)) return nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    its_class.next_filled = (its_class.next_filled + 1) % count;
    CallPlan& call_plan = *its_class.call_plans[its_class.next_filled];
    if (call_plan.users == 0 && are_alike(call_plan.spec, spec)) return &call_plan;
  }
  return nullptr;
}

CallClass& PlanCache::class_of(const CallDescription& call) {
  const ClassKey key = maker_.key_of(call);
  const std::size_t bytes = maker_.vector_bytes(call.spec, key);
  for (auto known = classes_.rbegin(); known != classes_.rend(); ++known) {
    if (!(*known)->serves(key, bytes)) continue;
    std::rotate(std::prev(known.base()), known.base(), classes_.end());
    return *classes_.back();
  }
  auto fresh = maker_.share_class(call.spec, key);
  Counters::add(members_.transport().counters().call_plans);
  if (classes_.size() >= kClassesMax) drop_oldest();
  return *classes_.emplace_back(std::move(fresh));
}

/// Those for which `is_dropped`; nobody uses them.
template <class IsDropped>
void PlanCache::drop_plans(CallClass& its_class, IsDropped&& is_dropped) noexcept {
  std::erase_if(its_class.call_plans, [&](const auto& call_plan) {
    if (!is_dropped(*call_plan)) return false;
    std::ranges::replace(recent_, call_plan.get(), nullptr);
    return true;
  });
}

/// The plans of a class that is dropped stay installed.
void PlanCache::drop_oldest() noexcept {
  const auto is_used = [](const auto& call_plan) { return call_plan->users != 0; };
  const auto oldest =
      std::ranges::find_if(classes_, [&](const auto& one) { return std::ranges::none_of(one->call_plans, is_used); });
  if (oldest == classes_.end()) return;
  drop_plans(**oldest, [](const CallPlan&) { return true; });
  classes_.erase(oldest);
}

CallPlan* PlanCache::plan_in(CallClass& its_class, const CallDescription& call) {
  auto& call_plans = its_class.call_plans;
  for (const auto& call_plan : call_plans) {
    if (serves(*call_plan, call)) return call_plan.get();
  }
  if (call_plans.size() > kLeftInClass) {
    drop_plans(its_class, [](const CallPlan& one) { return one.users == 0; });
  }
  CallPlan* filled = next_unused(its_class, call.spec);
  if (filled == nullptr) {
    filled = call_plans.emplace_back(maker_.blank(call.spec, its_class)).get();
    filled->its_class = &its_class;
  }
  try {
    ++its_class.fillings;
    maker_.fill(*filled, call);
  } catch (...) {
    drop_plans(its_class, [filled](const CallPlan& one) { return &one == filled; });  // half filled in
    throw;
  }
  return filled;
}

}  // namespace torii
