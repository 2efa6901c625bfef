// SPDX-License-Identifier: Apache-2.0
// The rules of copies that are left out, where they depend on whole plans.
#include "runtime/plan/shortcuts.hpp"

#include <algorithm>
#include <cstddef>

namespace torii {
namespace {

bool are_by_value(const std::vector<Stream>& streams) {
  return std::ranges::all_of(
      streams, [](const Stream& stream) { return stream.delivery == Delivery::through_slots && !stream.wide; });
}

/// A linear program knows one operand.
bool has_one_operand(const Lane& lane) {
  return std::ranges::all_of(lane.flows, [](const Flow& flow) {
    return std::ranges::all_of(flow.sources, [](StreamEnd end) { return end.stream != kOwn || end.position == 0; });
  });
}

bool carry_the_same(const Stream& a, const Stream& b) {
  return a.delivery == b.delivery && a.delivery != Delivery::local && a.wide == b.wide &&
         a.messages_per_segment == b.messages_per_segment && a.bundle == b.bundle;
}

}  // namespace

bool runs_as_list(const Plan& plan) {
  if (plan.exchange.exists() || plan.lanes.size() != 1) return false;
  if (plan.dealing == Dealing::block_cyclic && plan.blocks > 1) return false;
  return has_one_operand(plan.lanes.front()) && are_by_value(plan.in) && are_by_value(plan.out);
}

std::vector<int> flows_feeding(const Plan& plan) {
  std::vector<int> counts(plan.out.size(), 0);
  for (const Lane& lane : plan.lanes) {
    for (const Flow& flow : lane.flows) {
      for (const StreamEnd& end : flow.targets) ++counts[end.stream];
    }
  }
  return counts;
}

bool shares_payload(const Plan& plan, std::span<const int> feeding, StreamEnd a, StreamEnd b) {
  return feeding[a.stream] == 1 && feeding[b.stream] == 1 && a.position == b.position &&
         carry_the_same(plan.out[a.stream], plan.out[b.stream]);
}

std::vector<BlockUse> block_uses(const Plan& plan, const std::function<bool(int)>& is_remote) {
  std::vector<BlockUse> uses(static_cast<std::size_t>(plan.blocks));
  for (const Lane& lane : plan.lanes) {
    for (const Flow& flow : lane.flows) {
      const bool is_own = flow.sources.size() == 1 && flow.sources[0].stream == kOwn;
      const bool is_sent =
          std::ranges::any_of(flow.targets, [&](const StreamEnd& end) { return is_remote(end.stream); });
      for (int visit = 0; visit < flow.walk.count; ++visit) {
        BlockUse& use = uses[static_cast<std::size_t>(flow.walk.block(visit))];
        if (flow.keep) ++use.kept;
        if (flow.keep && !is_own) use.overwritten = true;
        if (is_own && is_sent) use.is_sent = true;
      }
    }
  }
  return uses;
}

}  // namespace torii
