// SPDX-License-Identifier: Apache-2.0
// Finds call plans, installs plans, and agrees with the members on them.
#include "api/installation/plan_cache.hpp"
#include "runtime/execution/installed_plan.hpp"
#include "runtime/execution/learnt_choices.hpp"
#include "runtime/execution/linear_program.hpp"
#include "runtime/execution/staging.hpp"
#include "runtime/plan/ring_rules.hpp"
#include "runtime/rings/channel_rings.hpp"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace torii {
namespace {

constexpr std::size_t kClassesMax = 256;
/// Call plans of a class that are kept for calls by turns, be it of other lengths or of other types.
constexpr std::size_t kKeptInClass = 8;
/// So many of a class's plans may be left over from calls that were in flight at once.
constexpr std::size_t kLeftInClass = 32;
/// A channel keeps the plans of dropped classes until it has so many.
constexpr std::size_t kPlansMax = 384;

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

/// Tells the plan from all others of the team on one channel.
std::string key_of(const CallPlan& call_plan) {
  const PlanRequest& request = call_plan.selected->request;
  // The binding names all fields, so a new one does not compile until it is a part of the key.
  const auto& [segment_bytes, slots, window, one_shot, radix, common_root, lanes] = request.tuning;
  const Algorithm* algorithm = call_plan.selected->algorithm;
  return std::string(algorithm->name) + ' ' + std::string(name(request.collective)) + ' ' +
         std::to_string(request.root) + ' ' + std::to_string(static_cast<int>(call_plan.selected->widening)) + ' ' +
         std::to_string(segment_bytes) + ' ' + std::to_string(slots) + ' ' + std::to_string(window) + ' ' +
         std::to_string(one_shot) + ' ' + std::to_string(radix) + ' ' + std::to_string(common_root) + ' ' +
         std::string(name(request.determinism)) + ' ' +
         std::to_string(request.leaves == nullptr ? 0 : request.leaves->digest()) + ' ' +
         std::string(lanes.begin(), lanes.end());
}

/// Whether the call has payloads for the outbox of a channel that has none yet. Unequal blocks may have any lengths.
bool lacks_outbox(const CallPlan& call_plan, const InstalledPlan& installed) noexcept {
  if (installed.rings == nullptr || installed.rings->has_outbox()) return false;
  return needs_outbox(installed,
                      has_unequal_blocks(call_plan.spec) ? SIZE_MAX : call_plan.shape.layout.longest_bytes());
}

}  // namespace

PlanCache::PlanCache(const Membership& members, InstallBoard& board, const PlanMaker& maker, StagingBudget& staging,
                     TeamRings* rings)
    : members_(members),
      board_(board),
      maker_(maker),
      staging_(staging),
      rings_(rings),
      learnt_(std::make_shared<LearntChoices>()) {}

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
  maker_.set_count(*free, spec.count);
  remember(*free);
  return free;
}

/// A plan of the class to fill in for a call like this one, each time another plan. nullptr if no plan is free, or if
/// the class has room for more plans.
CallPlan* PlanCache::next_unused(CallClass& its_class, const CallSpec& spec) noexcept {
  const std::size_t count = its_class.call_plans.size();
  if (count < kKeptInClass) return nullptr;
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
    maker_.fill(*filled, call);
  } catch (...) {
    drop_plans(its_class, [filled](const CallPlan& one) { return &one == filled; });  // half filled in
    throw;
  }
  return filled;
}

bool PlanCache::refresh_on(CallPlan& call_plan, std::size_t channel) const noexcept {
  if (channel >= call_plan.on_channels.size()) return false;
  CallPlan::OnChannel& installed = call_plan.on_channels[channel];
  const CallShape& shape = call_plan.shape;
  if (installed.memory == nullptr || installed.plan == nullptr || shape.layout.segments() != 1) return false;
  if (lacks_outbox(call_plan, *installed.plan)) return false;
  if (installed.is_current) return installed.has_program;
  compile_linear(*installed.plan, shape.layout, shape.unit_bytes, shape.element_bytes, *installed.memory);
  installed.is_current = installed.has_program = true;
  return true;
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
  if (call_plan.is_ready_on(channel)) return;
  CallPlan::OnChannel& installed = call_plan.on_channels[channel];
  if (installed.plan == nullptr) installed.plan = installed_on(call_plan, channel, waits);
  if (lacks_outbox(call_plan, *installed.plan)) staging_.take_outbox(rings_->on(channel));
  const CallShape& shape = call_plan.shape;
  if (has_linear(*installed.plan, shape.layout)) {
    if (installed.memory == nullptr) installed.memory = std::make_unique<LinearProgram>();
    compile_linear(*installed.plan, shape.layout, shape.unit_bytes, shape.element_bytes, *installed.memory);
    installed.has_program = true;
  }
  installed.is_current = true;
}

/// The call's plan on the channel, which all calls have that differ in their lengths and buffers alone.
std::shared_ptr<InstalledPlan> PlanCache::installed_on(CallPlan& call_plan, std::size_t channel, StartWaits& waits) {
  const std::string key = key_of(call_plan);
  Plans& plans = plans_[channel];
  if (const auto found = plans.find(key); found != plans.end()) return found->second;
  if (plans.size() >= kPlansMax) drop_unused(plans);
  std::shared_ptr<InstalledPlan> fresh = make_plan(call_plan, channel, waits);
  if (fresh->rings == nullptr) log_install(*fresh, key + " on channel " + std::to_string(channel), waits);
  Counters::add(members_.transport().counters().installed_plans);
  plans.emplace(key, fresh);
  return fresh;
}

/// A plan on standing rings has nothing of its own that a peer knows, so each rank may drop it when it likes to.
void PlanCache::drop_unused(Plans& plans) noexcept {
  std::erase_if(plans, [](const auto& one) { return one.second->rings != nullptr && one.second.use_count() == 1; });
}

/// Binds the plan to the channel's standing rings if it can use them, or else assigns staging to it.
std::unique_ptr<InstalledPlan> PlanCache::make_plan(const CallPlan& call_plan, std::size_t channel, StartWaits& waits) {
  const PlanRequest& request = call_plan.selected->request;
  const std::size_t segment_bytes = request.tuning.segment_bytes;
  const Algorithm* algorithm = call_plan.selected->algorithm;
  Plan plan = algorithm->plan(request, members_.rank());
  Placement placement;
  placement.transport = &members_.transport();
  placement.collective = request.collective;
  placement.learnt = learnt_;
  placement.plan_of = [&](int rank) { return algorithm->plan(request, rank); };
  placement.slots_least = slots_least(*algorithm, request);
  for (const Member& member : members_.all()) placement.context_ranks.push_back(member.context_rank);
  const Widening widening = call_plan.selected->widening;
  const bool has_rings = rings_ != nullptr && channel < rings_->channels();
  const RingNeeds needs = {placement.slots_least, pair_streams_most(*algorithm, request, plan)};
  if (has_rings && binds_to_rings(plan, needs, segment_bytes, widening, rings_->area().sizes())) {
    const int rings = rings_of(plan);
    if (rings > rings_->area().sizes().rings) {
      throw Error(Status::internal, std::string(algorithm->name) + " has " + std::to_string(rings) +
                                        " streams to one rank and declares " + std::to_string(needs.pair_streams));
    }
    staging_.take_rings(rings_->area().words_bytes(rings));
    placement.rings = &rings_->on(channel);
    return std::make_unique<InstalledPlan>(install(std::move(plan), segment_bytes, widening, placement));
  }
  const std::size_t bytes = staging_shape(plan, segment_bytes, widening, members_.several_nodes()).total_bytes;
  if (bytes > staging_.bytes()) {
    throw Error(Status::no_resource, "the plan of " + std::string(algorithm->name) + " needs " + std::to_string(bytes) +
                                         " bytes of staging, a team of " + std::to_string(members_.ranks()) +
                                         " ranks has " + std::to_string(staging_.bytes()) +
                                         "; make TORII_SEGMENT or TORII_SLOTS smaller, or TORII_ARENA larger where "
                                         "the fabric pins it");
  }
  if (!staging_.has_room(bytes)) staging_.recycle(waits, [this] { forget_plans(); });
  staging_.reserve(bytes);
  for (const Member& member : members_.all()) placement.staging_offsets.push_back(staging_.next_offset(member));
  auto fresh = std::make_unique<InstalledPlan>(install(std::move(plan), segment_bytes, widening, placement));
  staging_.take(bytes);
  return fresh;
}

/// `key` tells the plan from all others of the team.
void PlanCache::log_install(InstalledPlan& plan, const std::string& key, StartWaits& waits) {
  // A word may be overwritten when all members agree on it.
  if (const std::uint64_t next = installs_.number() + 1; next > InstallLog::kWords) {
    for (int member = 0; member < members_.ranks(); ++member) {
      waits.await_member(member, "to install a plan",
                         [&] { return verdict(member, next - InstallLog::kWords) == InstallLog::Verdict::agrees; });
    }
  }
  const std::string text = key + " at " + std::to_string(staging_.used_bytes());
  const std::uint64_t number = installs_.add(XXH3_64bits(text.data(), text.size()));
  plan.unagreed = number;
  board_.put_install(number, installs_.word(number));
}

/// Empties what call plans have on channels, and removes nothing: the one for which room is made is among them.
void PlanCache::forget_plans() noexcept {
  for (Plans& plans : plans_) plans.clear();
  const auto forget = [](CallPlan& call_plan) {
    for (CallPlan::OnChannel& installed : call_plan.on_channels) installed = {};
  };
  for (const auto& its_class : classes_) {
    for (const auto& call_plan : its_class->call_plans) {
      forget(*call_plan);
      if (call_plan->lengths != nullptr) forget(*call_plan->lengths);
    }
  }
}

}  // namespace torii
