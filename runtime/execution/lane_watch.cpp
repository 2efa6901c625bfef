// SPDX-License-Identifier: Apache-2.0
// Finds the lanes that wait for a word.
#include "runtime/execution/lane_watch.hpp"

namespace torii {

void LaneWatch::begin(const InstalledPlan& plan) {
  lanes_to_look_at_ = ~std::uint64_t{0};
  lanes_without_credit_ = 0;
  // Staging has the slots of in-streams one after the other, and further on the credits of out-streams.
  readers_of_in_.begin = plan.in.empty() ? 0 : plan.in.front().ring.stream_offset();
  readers_of_in_.stream_bytes = std::max<std::size_t>(plan.shape.stream_bytes, 1);
  readers_of_in_.lanes.assign(plan.in.size(), 0);
  readers_of_out_.begin = plan.out.empty() ? 0 : plan.out.front().ring.place().credits_offset;
  readers_of_out_.stream_bytes = std::max<std::size_t>(plan.shape.credit_bytes, 1);
  readers_of_out_.lanes.assign(plan.out.size(), 0);
}

void LaneWatch::add(std::size_t number, const Lane& lane) noexcept {
  const std::uint64_t bit = std::uint64_t{1} << std::min(number, kLaneBits);
  for (const Flow& flow : lane.flows) {
    for (const StreamEnd& end : flow.sources) {
      if (end.stream != kOwn) readers_of_in_.lanes[end.stream] |= bit;
    }
    for (const StreamEnd& end : flow.targets) readers_of_out_.lanes[end.stream] |= bit;
  }
}

void LaneWatch::changed(std::uint64_t offset) noexcept {
  const bool is_slot = offset < readers_of_out_.begin || readers_of_out_.lanes.empty();
  lanes_to_look_at_ |= is_slot ? readers_of_in_.of(offset) : readers_of_out_.of(offset);
}

void LaneWatch::has_not_moved(std::size_t lane, bool all_segments) noexcept {
  const std::uint64_t bit = std::uint64_t{1} << std::min(lane, kLaneBits);
  lanes_without_credit_ &= ~bit;
  if (lacks_credit_) lanes_without_credit_ |= bit;
  lacks_credit_ = false;
  if (lane < kLaneBits && all_segments) lanes_to_look_at_ &= ~bit;
}

}  // namespace torii
