// SPDX-License-Identifier: Apache-2.0
// Sizes of staging memory, and streams that share slots or credits.
#include "runtime/execution/staging.hpp"

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

StagingShape staging_shape(const Plan& plan, std::size_t segment_bytes, Widening widening, bool several_nodes) {
  StagingShape shape;
  const std::size_t bundle_bytes = segment_bytes * static_cast<std::size_t>(plan.bundle_max);
  const std::size_t payload_bytes = round_up(widened(bundle_bytes, widening), kLineBytes);
  const auto slots = static_cast<std::size_t>(plan.slots);
  shape.slot_bytes = kLineBytes + payload_bytes;
  shape.stream_bytes = slots * shape.slot_bytes;
  shape.has_cells = has_cells(plan, widening);
  if (shape.has_cells) {
    shape.cells_offset = shape.stream_bytes;
    shape.wide_cells_offset = shape.cells_offset + round_up(slots * kCellBytes, kLineBytes);
    shape.stream_bytes = shape.wide_cells_offset + round_up(slots * kWideCellBytes, kLineBytes);
  }
  shape.credit_bytes = round_up(slots * sizeof(std::uint64_t), kLineBytes);
  shape.offers_offset = static_cast<std::size_t>(plan.in_streams_max) * shape.stream_bytes;
  const std::size_t lines_max = plan.exchange.exists()
                                    ? kOfferLines * static_cast<std::size_t>(plan.ranks)
                                    : static_cast<std::size_t>(plan.in_streams_max + plan.out_streams_max);
  shape.credits_offset = shape.offers_offset + lines_max * kLineBytes;
  const auto outs = static_cast<std::size_t>(plan.out_streams_max);
  shape.send_offset = shape.credits_offset + outs * shape.credit_bytes;
  shape.total_bytes = round_up(shape.send_offset + (several_nodes ? outs * shape.stream_bytes : 0), 4096);
  return shape;
}

StagingShape signals_shape(const Plan& plan) noexcept {
  StagingShape shape;
  shape.slot_bytes = sizeof(std::uint64_t);
  shape.stream_bytes = shape.credit_bytes = static_cast<std::size_t>(plan.slots) * shape.slot_bytes;
  shape.offers_offset = shape.credits_offset = static_cast<std::size_t>(plan.in_streams_max) * shape.stream_bytes;
  shape.send_offset = shape.credits_offset + static_cast<std::size_t>(plan.out_streams_max) * shape.credit_bytes;
  shape.total_bytes = round_up(shape.send_offset, kLineBytes);
  return shape;
}

}  // namespace torii
