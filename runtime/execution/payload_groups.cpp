// SPDX-License-Identifier: Apache-2.0
// Finds streams that carry the same payloads.
#include "runtime/execution/payload_groups.hpp"

#include <algorithm>

#include "runtime/plan/shortcuts.hpp"
#include "runtime/plan/transfer_rules.hpp"

namespace torii {

std::vector<int> group_leaders(const Plan& plan, const Nodes& nodes) {
  const int node = nodes[static_cast<std::size_t>(plan.rank)];
  const auto is_remote = [&](const Stream& stream) { return nodes[static_cast<std::size_t>(stream.peer)] != node; };
  const std::vector<int> feeding = flows_feeding(plan);
  std::vector<int> leaders(plan.out.size(), -1);
  for (const Lane& lane : plan.lanes) {
    for (const Flow& flow : lane.flows) {
      for (auto end = flow.targets.begin(); end != flow.targets.end(); ++end) {
        const auto leader = std::find_if(flow.targets.begin(), end, [&](const StreamEnd& earlier) {
          return is_remote(plan.out[earlier.stream]) == is_remote(plan.out[end->stream]) &&
                 shares_payload(plan, feeding, earlier, *end);
        });
        if (leader == end) continue;
        leaders[leader->stream] = leader->stream;
        leaders[end->stream] = leader->stream;
      }
    }
  }
  return leaders;
}

bool has_cells(const Plan& plan, Widening widening) noexcept {
  return !plan.exchange.exists() && plan.bundle_max == 1 && widening == Widening::none;
}

}  // namespace torii
