// SPDX-License-Identifier: Apache-2.0
// Loads and stores portions of a vector by the caller's functions, and copies them from and to slots.
#include "runtime/execution/callback_mover.hpp"

namespace torii {

void CallbackMover::run(const Step& step) noexcept {
  const std::size_t bytes = call_.memory_bytes(call_.shape->layout.segment_length_bytes(step.block, step.segment));
  TimedChoice& choice = step.stores->functions.of(bytes);
  const TimedChoice::Turn turn = places_.touches_slots_first(step) ? TimedChoice::Turn{choice.best()} : choice.next();
  reaches_slots_ = turn.way == 1;
  const std::int64_t begun_ns = turn.timed ? now_ns() : 0;
  if (reaches_slots_ && places_.sources()[0].in_own_vector()) {
    // Functions load into a slot through the caches.
    (void)move_portions(step, false);
    if (call_.shape->non_temporal) kernels::store_fence();
  } else {
    places_.store(step, [&](bool is_timed) { return move_portions(step, is_timed); });
  }
  if (!turn.timed || bytes == 0) return;
  const auto time_ns = static_cast<double>(now_ns() - begun_ns);
  choice.record(turn.way, static_cast<float>(time_ns / static_cast<double>(bytes)));
}

/// Returns the time of the functions, which is not that of stores to peers.
std::int64_t CallbackMover::move_portions(const Step& step, bool is_timed) noexcept {
  is_timed_ = is_timed;
  functions_ns_ = 0;
  const bool at_once = reaches_slots_ && places_.targets().size() == 1;
  places_.for_each_portion(
      step, at_once, [this](std::size_t offset_bytes, std::size_t bytes) { return move_portion(offset_bytes, bytes); });
  return functions_ns_;
}

bool CallbackMover::move_portion(std::size_t offset_bytes, std::size_t bytes) noexcept {
  if (places_.reads_private_memory() && !places_.read_source(bytes, false)) return false;
  const bool loads = places_.sources()[0].in_own_vector();
  const void* const value = loads ? load(offset_bytes, bytes) : places_.source_addresses()[0];
  const auto targets = places_.targets();
  for (std::size_t i = 0; i < targets.size(); ++i) {
    void* const to = places_.target_addresses()[i];
    if (targets[i].in_own_vector() || to == value) continue;
    kernels::copy(to, value, bytes, targets[i].non_temporal);
  }
  // Such a target is the result, the first of a step's targets.
  if (!targets.empty() && targets[0].in_own_vector()) store(value, offset_bytes, bytes);
  return true;
}

const void* CallbackMover::load(std::size_t offset_bytes, std::size_t bytes) noexcept {
  const Access& access = *call_.buffers.access;
  void* const to = reaches_slots_ ? first_slot() : StepPlaces::hot_memory();
  const std::int64_t begun_ns = is_timed_ ? now_ns() : 0;
  access.load(to, offset_bytes, bytes, access.data);
  if (is_timed_) functions_ns_ += now_ns() - begun_ns;
  return to;
}

void CallbackMover::store(const void* value, std::size_t offset_bytes, std::size_t bytes) noexcept {
  const Access& access = *call_.buffers.access;
  const std::int64_t begun_ns = is_timed_ ? now_ns() : 0;
  if (places_.sources()[0].packed && !reaches_slots_) {
    kernels::copy(StepPlaces::hot_memory(), value, bytes, false);
    value = StepPlaces::hot_memory();
  }
  access.store(value, offset_bytes, bytes, access.data);
  if (is_timed_) functions_ns_ += now_ns() - begun_ns;
}

/// Where the current portion is loaded to: the first target that is no vector of the caller's, or else memory of this
/// rank (StepPlaces::hot_memory()).
void* CallbackMover::first_slot() const noexcept {
  const auto targets = places_.targets();
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (!targets[i].in_own_vector()) return places_.target_addresses()[i];
  }
  return StepPlaces::hot_memory();
}

}  // namespace torii
