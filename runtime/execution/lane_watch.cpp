// SPDX-License-Identifier: Apache-2.0
// Finds the lanes that wait for a word.
#include "runtime/execution/lane_watch.hpp"

namespace torii {

void LaneWatch::begin(const InstalledPlan& plan) {
  lanes_to_look_at_ = kAllLanes;
  lanes_without_credit_ = 0;
  readers_of_in_.assign(plan.in.size(), 0);
  readers_of_out_.assign(plan.out.size(), 0);
}

void LaneWatch::add(std::size_t number, const Lane& lane) noexcept {
  const std::uint64_t bit = std::uint64_t{1} << std::min(number, kLaneBits);
  for (const Flow& flow : lane.flows) {
    for (const StreamEnd& end : flow.sources) {
      if (end.stream != kOwn) readers_of_in_[end.stream] |= bit;
    }
    for (const StreamEnd& end : flow.targets) readers_of_out_[end.stream] |= bit;
  }
}

void LaneWatch::changed(std::uint64_t offset) noexcept {
  lanes_to_look_at_ |= offset < words_.credits_begin
                           ? readers_of(offset / words_.in_bytes, readers_of_in_)
                           : readers_of((offset - words_.credits_begin) / words_.credit_bytes, readers_of_out_);
}

void LaneWatch::has_not_moved(std::size_t lane, bool all_segments) noexcept {
  const std::uint64_t bit = std::uint64_t{1} << std::min(lane, kLaneBits);
  lanes_without_credit_ &= ~bit;
  if (lacks_credit_) lanes_without_credit_ |= bit;
  lacks_credit_ = false;
  if (lane < kLaneBits && all_segments) lanes_to_look_at_ &= ~bit;
}

}  // namespace torii
