// SPDX-License-Identifier: Apache-2.0
// Installs plans on channels: binds them to standing rings.
#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "api/installation/plan_cache.hpp"
#include "runtime/execution/installed_plan.hpp"
#include "runtime/execution/learnt_choices.hpp"
#include "runtime/execution/linear_program.hpp"
#include "runtime/plan/ring_rules.hpp"
#include "runtime/rings/channel_rings.hpp"

namespace torii {
namespace {

/// A channel keeps the plans of dropped classes until it has so many.
constexpr std::size_t kPlansMax = 384;

/// The bytes of a call's longest block. Unequal blocks may have any lengths, which some ranks do not know yet.
std::size_t longest_bytes_of(const CallPlan& call_plan) noexcept {
  return has_unequal_blocks(call_plan.spec) ? SIZE_MAX : call_plan.shape.layout.longest_bytes();
}

/// Whether calls of the class may be so long that operands in private memory are read.
bool may_read(const CallPlan& call_plan) noexcept {
  return call_plan.spec.has(CallMark::unequal) || call_plan.selected->holds.most >= PrivateReadChoice::kBytesMin;
}

/// Whether the call has payloads for the outbox of its channel, which is not ready for calls of its plan.
bool lacks_outbox(const CallPlan& call_plan, const InstalledPlan& installed) noexcept {
  return !installed.uses.has_outbox && needs_outbox(installed, longest_bytes_of(call_plan));
}

}  // namespace

bool PlanCache::refresh_on(CallPlan& call_plan, std::size_t channel) const noexcept {
  if (channel >= call_plan.on_channels.size()) return false;
  CallPlan::OnChannel& installed = call_plan.on_channels[channel];
  const CallShape& shape = call_plan.shape;
  if (installed.memory == nullptr || installed.plan == nullptr || shape.layout.segments() != 1) return false;
  if (installed.plan->uses.awaits_grants) return false;
  if (installed.plan->uses.message_size != message_size_of(call_plan)) return false;
  if (lacks_outbox(call_plan, *installed.plan)) return false;
  if (installed.is_current) return installed.has_program;
  compile_linear(*installed.plan, shape.layout, shape.unit_bytes, shape.element_bytes, *installed.memory);
  installed.is_current = installed.has_program = true;
  return true;
}

bool PlanCache::make_ready_on(CallPlan& call_plan, std::size_t channel) {
  if (has_own_rings(channel) && !(own_rings_.are_known(channel) && own_rings_.have_left())) return false;
  install_one(call_plan, channel);
  if (call_plan.lengths != nullptr) install_one(*call_plan.lengths, channel);
  return call_plan.is_ready_on(channel);
}

/// For a call plan that is not ready.
bool PlanCache::has_told_rings(int member, const CallPlan& call_plan, std::size_t channel) const noexcept {
  if (has_own_rings(channel) && !own_rings_.has_told(member, channel)) return false;
  const auto has_told = [&](const CallPlan& one) {
    if (channel >= one.on_channels.size() || one.on_channels[channel].plan == nullptr) return true;
    return has_granted(*one.on_channels[channel].plan, member);
  };
  return has_told(call_plan) && (call_plan.lengths == nullptr || has_told(*call_plan.lengths));
}

void PlanCache::install_one(CallPlan& call_plan, std::size_t channel) {
  if (call_plan.on_channels.size() <= channel) call_plan.on_channels.resize(channel + 1);
  if (plans_.size() <= channel) plans_.resize(channel + 1);
  if (call_plan.has_plan_on(channel)) return;
  CallPlan::OnChannel& installed = call_plan.on_channels[channel];
  if (installed.plan == nullptr || installed.plan->uses.message_size != message_size_of(call_plan)) {
    installed.memory.reset();  // it names the plan by an address, which another one may get
    installed.plan = installed_on(call_plan, channel);
  }
  if (lacks_outbox(call_plan, *installed.plan)) {
    if (!has_own_rings(channel)) {
      memory_.take_outbox(rings_.on(channel), outbox_bytes_of(call_plan, installed.plan->plan));
    }
    installed.plan->uses.has_outbox = true;
  }
  if (installed.plan->uses.awaits_grants) {
    installed.plan->uses.awaits_grants =
        !take_grants(*installed.plan, members_.context().arena_bytes()) || !distant_->have_left();
    if (installed.plan->uses.awaits_grants) return;
  }
  const CallShape& shape = call_plan.shape;
  if (has_linear(*installed.plan, shape.layout)) {
    if (installed.memory == nullptr) installed.memory = std::make_unique<LinearProgram>();
    compile_linear(*installed.plan, shape.layout, shape.unit_bytes, shape.element_bytes, *installed.memory);
    installed.has_program = true;
  }
  installed.is_current = true;
}

/// So much of the outbox of a shared channel may have pages by calls with this plan (Outbox::reach_for()).
std::size_t PlanCache::outbox_bytes_of(const CallPlan& call_plan, const Plan& plan) const noexcept {
  const std::size_t message_bytes = message_bytes_of(call_plan);
  const std::size_t extents_bytes =
      plan.exchange.exists()
          ? exchange_extents_bytes(plan, message_bytes, rings_.area().sizes())
          : own_outbox_bytes(plan, message_bytes, call_plan.selected->widening, rings_.area().sizes());
  return std::max(extents_bytes, kOutboxAheadBytes);
}

/// A class's plan fits into the shared rings (fitting_plan()), so it fits into rings of its own.
RingSizes PlanCache::own_rings_of(const CallPlan& call_plan) const {
  const ClassPlan& selected = *call_plan.selected;
  const PlanRequest& request = selected.request;
  const Plan& plan = selected.plan;
  const int streams = plan.exchange.exists() ? 1 : pair_streams_most(*selected.algorithm, request, plan);
  // Up to a quarter of the entries may be taken and not counted (slots_counted()).
  const int least = plan.exchange.exists() ? 1 : slots_least(*selected.algorithm, request);
  RingSizes sizes = own_ring_sizes(rings_.area().sizes(), std::max(plan.slots, (4 * least - 2) / 3), streams);
  const std::size_t message_bytes =
      distant_ ? message_bytes_of(call_plan) : std::min(request.tuning.segment_bytes, longest_bytes_of(call_plan));
  sizes.outbox_bytes = own_outbox_bytes(plan, message_bytes, selected.widening, sizes);
  if (call_plan.lengths == nullptr) return sizes;
  const RingSizes telling = own_rings_of(*call_plan.lengths);
  sizes.entries = std::max(sizes.entries, telling.entries);
  sizes.rings = std::max(sizes.rings, telling.rings);
  sizes.outbox_bytes = std::max(sizes.outbox_bytes, telling.outbox_bytes);
  return sizes;
}

std::vector<OutboxMemory> PlanCache::outboxes() const {
  std::vector<OutboxMemory> all = own_rings_.outboxes();
  for (std::size_t channel = 0; channel < rings_.shared(); ++channel) {
    const ChannelRings& one = rings_.on(channel);
    if (one.has_outbox()) all.push_back({one.outbox_offset(), one.outbox().bytes(), one.outbox().touched_bytes()});
  }
  return all;
}

std::vector<Stretch> PlanCache::entries() const {
  std::vector<Stretch> all = own_rings_.words();
  if (distant_) all.insert(all.end(), distant_->memory().begin(), distant_->memory().end());
  return all;
}

std::vector<PutOwner> PlanCache::take_puts() {
  std::vector<PutOwner> all;
  all.push_back(own_rings_.take_puts());
  if (distant_) all.push_back(distant_->take_puts());
  return all;
}

/// The call's plan on the channel, which all calls have that differ in their lengths and buffers alone.
std::shared_ptr<InstalledPlan> PlanCache::installed_on(CallPlan& call_plan, std::size_t channel) {
  const std::pair key(message_size_of(call_plan), call_plan.selected->name);
  Plans& plans = plans_[channel];
  if (const auto found = plans.find(key); found != plans.end()) {
    if (found->second->private_reads.are_made && may_read(call_plan)) learnt_->take_read_memory();
    return found->second;
  }
  if (plans.size() >= kPlansMax) drop_unused(plans);
  std::shared_ptr<InstalledPlan> fresh = make_plan(call_plan, channel);
  Counters::add(members_.transport().counters().installed_plans);
  plans.emplace(key, fresh);
  return fresh;
}

int PlanCache::message_size_of(const CallPlan& call_plan) const noexcept {
  if (!distant_) return 0;
  return distant_size(std::min(call_plan.selected->request.tuning.segment_bytes, longest_bytes_of(call_plan)));
}

/// The longest messages of all calls that have one plan with this one.
std::size_t PlanCache::message_bytes_of(const CallPlan& call_plan) const noexcept {
  const std::size_t segment_bytes = call_plan.selected->request.tuning.segment_bytes;
  return distant_ ? std::min(segment_bytes, distant_payload_bytes(message_size_of(call_plan))) : segment_bytes;
}

/// A plan has nothing of its own that a peer knows, so each rank may drop it when it likes to.
void PlanCache::drop_unused(Plans& plans) noexcept {
  std::erase_if(plans, [](const auto& one) { return one.second.use_count() == 1; });
}

std::unique_ptr<InstalledPlan> PlanCache::make_plan(const CallPlan& call_plan, std::size_t channel) {
  const PlanRequest& request = call_plan.selected->request;
  const Algorithm* algorithm = call_plan.selected->algorithm;
  Plan plan = call_plan.selected->plan;
  Placement placement;
  placement.transport = &members_.transport();
  placement.collective = request.collective;
  placement.learnt = learnt_;
  placement.slots_least = slots_least(*algorithm, request);
  for (const Member& member : members_.all()) placement.context_ranks.push_back(member.context_rank);
  const Widening widening = call_plan.selected->widening;
  placement.message_size = message_size_of(call_plan);
  placement.may_read = may_read(call_plan);
  placement.rings = &rings_.on(channel);
  const int streams = rings_of(plan);
  const RingSizes& sizes = placement.rings->sizes();
  if (streams > sizes.streams_most()) {
    throw Error(Status::internal, std::string(algorithm->name) + " has " + std::to_string(streams) +
                                      " streams to one rank, more than it declares");
  }
  placement.distant_size = distant_size_of(plan, message_bytes_of(call_plan), widening);
  const int last = sizes.ring(ring_kind(plan, placement.distant_size), streams - 1);
  if (!has_own_rings(channel)) memory_.take_rings(rings_.area().words_bytes(last + 1));
  if (distant_) distant_->take_for(plan, *placement.rings, placement.distant_size);
  return std::make_unique<InstalledPlan>(install(std::move(plan), widening, placement));
}

}  // namespace torii
