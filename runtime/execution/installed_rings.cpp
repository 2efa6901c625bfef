// SPDX-License-Identifier: Apache-2.0
// Plans on the standing rings of a channel: which plans can use them, and what their calls do to them.
#include <algorithm>

#include "runtime/execution/installed_plan.hpp"
#include "runtime/plan/ring_rules.hpp"

namespace torii {
namespace {

/// By out-stream: whether it carries more than tokens.
std::vector<bool> outs_with_payload(const Plan& plan) {
  std::vector<bool> has(plan.out.size(), false);
  for (const Lane& lane : plan.lanes) {
    for (const Flow& flow : lane.flows) {
      if (flow.sources.empty()) continue;
      for (const StreamEnd& end : flow.targets) has[end.stream] = true;
    }
  }
  return has;
}

}  // namespace

bool binds_to_rings(const Plan& plan, const RingNeeds& needs, std::size_t segment_bytes, Widening widening,
                    const RingSizes& sizes) noexcept {
  if (plan.slots > sizes.entries) return false;
  if (plan.exchange.exists()) {
    const std::size_t message_bytes = round_up(segment_bytes, kLineBytes);
    return message_bytes <= sizes.outbox_bytes / static_cast<std::size_t>(std::max(plan.ranks - 1, 1));
  }
  if (needs.slots_least > sizes.entries - (entry_published_every(sizes.entries) - 1)) return false;
  if (needs.pair_streams > sizes.rings) return false;
  const std::size_t payload_bytes =
      round_up(widened(segment_bytes * static_cast<std::size_t>(plan.bundle_max), widening), kLineBytes);
  return payload_bytes <= sizes.outbox_bytes / static_cast<std::size_t>(plan.slots) /
                              static_cast<std::size_t>(std::max(plan.out_streams_max, 1));
}

void use_rings(InstalledPlan& installed, ChannelRings& rings, int slots_least) {
  const Plan& plan = installed.plan;
  RingUses& uses = installed.uses;
  installed.rings = &rings;
  const int entries = rings.sizes().entries;
  uses.entries = SlotOrder(entries);
  uses.payload_slots = SlotOrder(plan.slots);
  uses.short_most = kInlineBytes / widened(static_cast<std::size_t>(plan.bundle_max), installed.widening);
  uses.every_entry = static_cast<std::uint64_t>(entry_published_every(entries));
  uses.every_payload = static_cast<std::uint64_t>(published_every(plan.slots, slots_least));
  for (const InstalledIn& in : installed.in) {
    uses.numbering.push_back({&in.ring.end(), in.ring.place().messages});
    uses.incoming.push_back(&in.ring.end());
  }
  const std::vector<bool> has_payload = outs_with_payload(plan);
  std::vector<int> use_of(installed.out.size(), -1);
  for (std::size_t i = 0; i < installed.out.size(); ++i) {
    const InstalledOut& out = installed.out[i];
    uses.numbering.push_back({&out.ring.end(), out.ring.place().messages});
    if (out.stream.delivery == Delivery::local || !has_payload[i]) continue;
    use_of[i] = static_cast<int>(uses.payloads.size());
    uses.payloads.push_back({.ring = &out.ring.end(),
                             .messages = out.ring.place().messages,
                             .bundle = static_cast<std::size_t>(out.stream.bundle),
                             .widening = out.stream.wide ? installed.widening : Widening::none,
                             .is_operand = out.stream.delivery == Delivery::read_in_place});
  }
  for (std::size_t i = 0; i < installed.out.size(); ++i) {
    const int leader = installed.out[i].leader;
    if (use_of[i] < 0 || leader < 0 || leader == static_cast<int>(i)) continue;
    uses.payloads[static_cast<std::size_t>(use_of[i])].leader = use_of[static_cast<std::size_t>(leader)];
  }
  rings.outbox().allow_readers(plan.exchange.exists() ? installed.exchange.peers.size() : uses.payloads.size());
}

}  // namespace torii
