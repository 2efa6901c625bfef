// SPDX-License-Identifier: Apache-2.0
// The executor in a simulation: work that is counted instead of done, and lanes that are looked at only when something
// they wait for has changed. Thousands of ranks in one process spend their time on words that are in no cache.
#include <algorithm>

#include "runtime/execution/window_schedule.hpp"

namespace torii {

/// Whether a simulation has counted the step's work instead of having it done.
bool WindowSchedule::is_modelled(const Step& step) noexcept {
  if (call_.model == nullptr) return false;
  const std::size_t bytes = call_.memory_bytes(call_.shape->layout.segment_length_bytes(step.block, step.segment));
  return !call_.model->runs(step.flow->sources.size(), bytes);
}

void WindowSchedule::find_readers() noexcept {
  lanes_to_look_at_ = ~std::uint64_t{0};
  lanes_without_credit_ = 0;
  // Staging has the slots of in-streams one after the other, and further on the credits of out-streams.
  const StagingShape& shape = call_.plan->shape;
  readers_of_in_.begin = call_.plan->in.empty() ? 0 : call_.plan->in.front().ring.stream_offset();
  readers_of_in_.stream_bytes = std::max<std::size_t>(shape.stream_bytes, 1);
  readers_of_in_.lanes.assign(call_.plan->in.size(), 0);
  readers_of_out_.begin = call_.plan->out.empty() ? 0 : call_.plan->out.front().ring.place().credits_offset;
  readers_of_out_.stream_bytes = std::max<std::size_t>(shape.credit_bytes, 1);
  readers_of_out_.lanes.assign(call_.plan->out.size(), 0);
  for (std::size_t number = 0; number < lanes_.size(); ++number) {
    const std::uint64_t lane = std::uint64_t{1} << std::min(number, kLaneBits);
    for (const Flow& flow : lanes_[number].lane->flows) {
      for (const StreamEnd& end : flow.sources) {
        if (end.stream != kOwn) readers_of_in_.lanes[end.stream] |= lane;
      }
      for (const StreamEnd& end : flow.targets) readers_of_out_.lanes[end.stream] |= lane;
    }
  }
}

void WindowSchedule::changed(std::uint64_t offset) noexcept {
  const bool is_slot = offset < readers_of_out_.begin || readers_of_out_.lanes.empty();
  lanes_to_look_at_ |= is_slot ? readers_of_in_.of(offset) : readers_of_out_.of(offset);
}

/// No step of the lane below that segment can run. Nothing is known of the segments that were not looked at.
void WindowSchedule::has_not_moved(std::size_t number, std::int64_t below) noexcept {
  const std::uint64_t lane = std::uint64_t{1} << std::min(number, kLaneBits);
  lanes_without_credit_ &= ~lane;
  if (lacks_credit_) lanes_without_credit_ |= lane;
  lacks_credit_ = false;
  const LaneState& state = lanes_[number];
  const std::int64_t window_end = state.lowest + static_cast<std::int64_t>(state.window);
  if (number < kLaneBits && below >= std::min(window_end, call_.shape->layout.segments())) lanes_to_look_at_ &= ~lane;
}

}  // namespace torii
