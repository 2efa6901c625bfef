// SPDX-License-Identifier: Apache-2.0
// Straight lists: the same waits, folds, signals and credits as the window schedule's, without its choice of lanes and
// segments. A call of 8 bytes is a line there and a line back, so here every instruction counts.
#pragma once

#include <algorithm>
#include <cstring>

#include "runtime/execution/data_mover.hpp"
#include "runtime/execution/linear_schedule.hpp"
#include "runtime/execution/sending.hpp"
#include "runtime/execution/waiting.hpp"
#include "runtime/execution/words.hpp"

namespace torii {
namespace linear {

inline constexpr std::size_t kQuarterBytes = kLineBytes / 4;

inline void copy_quarter(void* to, const void* from, std::size_t at) noexcept {
  std::memcpy(static_cast<std::byte*>(to) + at, static_cast<const std::byte*>(from) + at, kQuarterBytes);
}

/// Most short vectors are one element or two, or fill a line at most; a call of the library's copy is longer than the
/// rest of the step.
inline void copy_short(void* to, const void* from, std::size_t bytes) noexcept {
  if (to == from) return;
  if (bytes == sizeof(std::uint64_t)) {
    std::memcpy(to, from, sizeof(std::uint64_t));
  } else if (bytes == sizeof(std::uint32_t)) {
    std::memcpy(to, from, sizeof(std::uint32_t));
  } else if (bytes >= kQuarterBytes && bytes <= kLineBytes) {
    // From both ends; what meets in the middle is copied twice.
    copy_quarter(to, from, 0);
    copy_quarter(to, from, bytes - kQuarterBytes);
    if (bytes <= 2 * kQuarterBytes) return;
    copy_quarter(to, from, kQuarterBytes);
    copy_quarter(to, from, bytes - 2 * kQuarterBytes);
  } else {
    kernels::copy(to, from, bytes, false);
  }
}

inline bool is_ready(LinearState& at, const RunningCall& call, const StraightStep& step) noexcept {
  const std::uint64_t base = call.segments_base;
  for (; at.sources_seen < step.sources.size(); ++at.sources_seen) {
    const StraightSource& source = step.sources[at.sources_seen];
    if (source.own) continue;
    const std::uint64_t message = base * source.messages + source.position;
    const std::size_t offset = source.ring.offset(call.slots, message);
    if (!source.ring.arrived_at(offset, call.signature, message)) return false;
    at.sources[at.sources_seen] = source.payload + offset;
  }
  for (const StraightTarget& target : step.targets) {
    if (!target.ring.may_fill(call, call.slots, base * target.messages + target.position)) return false;
  }
  return true;
}

/// Folds or copies into the first `count` of targets_. A fold goes into the first one, which stays in the caches if
/// others are copied from it; the own result, where there is one, stands first.
inline void store(LinearState& at, const RunningCall& call, const StraightStep& step, std::uint32_t count,
                  bool streaming) noexcept {
  std::uint32_t first = 0;
  const void* value = at.sources[0];
  if (step.sources.size() > 1) {
    fold(*call.shape,
         {.sources = at.sources.data(),
          .source_count = static_cast<int>(step.sources.size()),
          .targets = at.targets.data(),
          .target_count = 1,
          .streaming_targets = streaming && count == 1 ? 1U : 0U},
         step.length_bytes / call.shape->element_bytes, step.fold);
    value = at.targets[0];
    first = 1;
  }
  for (std::uint32_t i = first; i < count; ++i) {
    if (at.targets[i] == value) continue;
    if (streaming && !(step.keep && i == 0)) {
      kernels::copy(at.targets[i], value, step.length_bytes, true);
    } else {
      copy_short(at.targets[i], value, step.length_bytes);
    }
  }
}

inline void move(LinearState& at, const RunningCall& call, const StraightStep& step) noexcept {
  const std::uint64_t base = call.segments_base;
  const auto own = reinterpret_cast<const void*>(call.buffers.input + step.offset_bytes);
  for (std::size_t i = 0; i < step.sources.size(); ++i) {
    if (step.sources[i].own) at.sources[i] = own;
  }
  std::uint32_t count = 0;
  if (step.keep) at.targets[count++] = reinterpret_cast<void*>(call.buffers.result + step.offset_bytes);
  for (const StraightTarget& target : step.targets) {
    if (!target.stores) continue;
    at.targets[count++] = target.payload + target.ring.offset(call.slots, base * target.messages + target.position);
  }
  if (count == 0) return;
  if (!step.may_stream) {
    store(at, call, step, count, false);
    return;
  }
  store_and_time(call.plan->stores[step.flow].slots, step.length_bytes * (count - (step.keep ? 1 : 0)),
                 [&](bool streaming) { store(at, call, step, count, streaming); });
}

inline void signal(RunningCall& call, const StraightStep& step) noexcept {
  const std::uint64_t base = call.segments_base;
  for (const StraightTarget& target : step.targets) {
    if (!target.signals) continue;
    target.ring.signal(call, call.signature, base * target.messages + target.position, target.signalled_bytes);
  }
  for (const StraightSource& source : step.sources) {
    if (source.releases) source.ring.release(call, base * source.messages + source.position);
  }
}

}  // namespace linear

template <class Host>
Progress LinearSchedule<Host>::advance(RunningCall& call) noexcept {
  const StraightStep* const begun = state_.next;
  for (; state_.next != state_.end; ++state_.next) {
    const StraightStep& step = *state_.next;
    if (!linear::is_ready(state_, call, step)) return state_.next == begun ? Progress::idle : Progress::moved;
    const bool runs = host_.runs(step.sources.size(), step.length_bytes);
    if (runs && step.length_bytes != 0 && !step.sources.empty()) linear::move(state_, call, step);
    linear::signal(call, step);
    if (call.status != Status::ok) return Progress::idle;
    state_.sources_seen = 0;
    if (host_.is_busy()) {
      ++state_.next;
      return Progress::moved;
    }
  }
  return call.finish() ? Progress::done : Progress::idle;
}

template <class Host>
Stall LinearSchedule<Host>::stall() const noexcept {
  Stall stall;
  if (state_.next == state_.end) return stall;
  stall.label = "one segment";
  if (state_.sources_seen < state_.next->sources.size()) {
    stall.peer = state_.next->sources[state_.sources_seen].ring.peer();
  } else if (!state_.next->targets.empty()) {
    stall.peer = state_.next->targets.front().ring.peer();
  }
  return stall;
}

}  // namespace torii
