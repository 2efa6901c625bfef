// SPDX-License-Identifier: Apache-2.0
// Linear programs: the same waits, folds, signals and credits as the window schedule's, without its choice of lanes and
// segments. A call of 8 bytes is a line there and a line back, so here every instruction counts.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>

#include "runtime/execution/data_mover.hpp"
#include "runtime/execution/linear_schedule.hpp"
#include "runtime/execution/sending.hpp"
#include "runtime/execution/try_run.hpp"
#include "runtime/fabric/waiting.hpp"
#include "runtime/fabric/words.hpp"

namespace torii {
namespace linear {

inline constexpr std::size_t kQuarterBytes = kLineBytes / 4;

inline void copy_quarter(void* to, const void* from, std::size_t at) noexcept {
  std::memcpy(static_cast<std::byte*>(to) + at, static_cast<const std::byte*>(from) + at, kQuarterBytes);
}

/// Most short vectors are one element or two, or fill a line at most. A call of the library's copy is longer than the
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

/// Folds or copies into the first `count` of targets_. A fold goes into the first target, which stays in the caches if
/// others are copied from it. The own result, if there is one, is first.
inline void store(LinearState& at, const RunningCall& call, const LinearStep& step, std::uint32_t count,
                  bool non_temporal) noexcept {
  std::uint32_t first = 0;
  const void* value = at.sources[0];
  if (step.sources.size() > 1) {
    const kernels::Operands operands = {.sources = at.sources.data(),
                                        .source_count = static_cast<int>(step.sources.size()),
                                        .targets = at.targets.data(),
                                        .target_count = 1,
                                        .non_temporal_targets = non_temporal && count == 1 ? 1U : 0U};
    fold(operands, step.length_bytes / call.shape->element_bytes, *call.shape, call.buffers.user, step.fold);
    value = at.targets[0];
    first = 1;
  }
  for (std::uint32_t i = first; i < count; ++i) {
    if (at.targets[i] == value) continue;
    if (non_temporal && !(step.keep && i == 0)) {
      kernels::copy(at.targets[i], value, step.length_bytes, true);
    } else {
      copy_short(at.targets[i], value, step.length_bytes);
    }
  }
}

template <Rings kRings, class End>
inline bool is_here(const End& end) noexcept {
  return kRings == Rings::here || !end.ring.remote();
}

/// A call has one segment.
template <class End>
inline std::uint64_t number_of(const End& end) noexcept {
  return end.ring.first() + end.position;
}

/// In a function of its own, like the stores below: short calls come to neither.
[[gnu::noinline]] inline std::byte* outside_place(const RunningCall& call, const LinearTarget& target) noexcept {
  const std::uint64_t message = number_of(target);
  if (target.ring.remote())
    return call.distant_payload(target.ring, message, target.bundle_bytes) + target.before_bytes;
  return call.plan->rings->outbox_memory() + target.ring.payload_offset(call.on_rings.places, message) +
         target.before_bytes;
}

template <Rings kRings>
[[gnu::noinline]] void store_timed(LinearState& at, const RunningCall& call, const LinearStep& step,
                                   std::uint32_t count) noexcept {
  const std::size_t bytes = step.length_bytes * (count - (step.keep ? 1 : 0));
  const bool is_first_touch = std::ranges::any_of(
      step.targets, [&](const LinearTarget& target) { return call.touches_first(target.ring, number_of(target)); });
  store_and_time(call.plan->stores[step.flow]->slots.of(bytes), bytes, is_first_touch, call.transport.counters(),
                 [&](bool non_temporal) { store(at, call, step, count, non_temporal); });
}

template <Rings kRings>
inline void move(LinearState& at, const RunningCall& call, const LinearStep& step) noexcept {
  void** const targets = at.targets.data();  // beside the loop, since any store might change a member
  std::uint32_t count = 0;
  if (step.keep) targets[count++] = reinterpret_cast<void*>(call.buffers.result + step.offset_bytes);
  for (const LinearTarget& target : step.targets) {
    if (!target.stores) continue;
    targets[count++] = target.is_outside ? outside_place(call, target)
                                         : target.payload + target.ring.offset(call.entries, number_of(target));
  }
  if (count == 0) return;
  if (step.may_stream) [[unlikely]] {
    store_timed<kRings>(at, call, step, count);
  } else {
    store(at, call, step, count, false);
  }
}

/// The next step of the list.
template <Rings kRings>
class LinearOperation {
 public:
  LinearOperation(LinearState& at, RunningCall& call, const LinearStep& step) : at_(at), call_(call), step_(step) {}

  std::span<const LinearSource> sources() const noexcept { return step_.sources; }
  std::span<const LinearTarget> targets() const noexcept { return step_.targets; }
  std::size_t& sources_seen() const noexcept { return at_.sources_seen; }
  std::size_t bytes() const noexcept { return step_.length_bytes; }

  bool has_arrived(const LinearSource& source, std::size_t number) const noexcept {
    if (source.own) {
      at_.sources[number] = reinterpret_cast<const void*>(call_.buffers.input + step_.offset_bytes);
      return true;
    }
    const std::uint64_t message = number_of(source);
    const std::size_t offset = source.ring.offset(call_.entries, message);
    if (!source.ring.arrived_at(offset, call_.signature, message)) return false;
    if (source.is_outside) return finds_outside(source, offset, number);
    at_.sources[number] = source.payload + offset;
    return true;
  }
  bool is_free(const LinearTarget& target) const noexcept {
    const std::uint64_t message = number_of(target);
    if (is_here<kRings>(target)) return target.ring.has_entry(call_, message);
    return target.ring.may_fill(call_, call_.entries, message);
  }
  bool move() const noexcept {
    if (step_.length_bytes != 0 && !step_.sources.empty()) linear::move<kRings>(at_, call_, step_);
    return true;
  }
  void skip() const noexcept {}
  void signal(const LinearTarget& target) const noexcept {
    if (!target.signals) return;
    const std::uint64_t message = number_of(target);
    if (is_here<kRings>(target)) {
      target.ring.signal_entry(call_, call_.signature, message, target.signalled_bytes);
    } else {
      target.ring.signal(call_, call_.signature, message, target.signalled_bytes);
    }
  }
  void release(const LinearSource& source) const noexcept {
    if (!source.releases) return;
    const std::uint64_t message = number_of(source);
    if (is_here<kRings>(source)) {
      source.ring.take(call_, message);
    } else {
      source.ring.release(call_, message);
    }
  }

 private:
  bool finds_outside(const LinearSource& source, std::size_t offset, std::size_t number) const noexcept {
    const std::uint64_t at = source.ring.outside_offset(offset);
    const ReceiveEnd& end = source.ring.end();
    if (source.bundle_bytes > end.arena_bytes || at > end.arena_bytes - source.bundle_bytes) [[unlikely]] {
      return call_.accepts(source.ring.peer(), at, source.bundle_bytes);
    }
    at_.sources[number] = end.sender_arena + at + source.before_bytes;
    return true;
  }

  LinearState& at_;
  RunningCall& call_;
  const LinearStep& step_;
};

}  // namespace linear

template <class Host>
Progress LinearSchedule<Host>::advance(RunningCall& call) noexcept {
  return call.plan->remote ? advance_on<linear::Rings::mixed>(call) : advance_on<linear::Rings::here>(call);
}

template <class Host>
template <linear::Rings kRings>
[[gnu::always_inline]] inline Progress LinearSchedule<Host>::advance_on(RunningCall& call) noexcept {
  const LinearStep* const begun = state_.next;
  for (; state_.next != state_.end; ++state_.next) {
    if (!try_run(host_, linear::LinearOperation<kRings>(state_, call, *state_.next))) {
      return state_.next == begun ? Progress::idle : Progress::moved;
    }
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

template <class Host>
bool LinearSchedule<Host>::awaits(int peer) const noexcept {
  if (state_.next == state_.end) return false;
  const LinearStep& step = *state_.next;
  const auto is_of_peer = [peer](const auto& end) { return end.ring.peer() == peer; };
  if (std::ranges::any_of(step.targets, is_of_peer)) return true;
  return state_.sources_seen < step.sources.size() && !step.sources[state_.sources_seen].own &&
         is_of_peer(step.sources[state_.sources_seen]);
}

}  // namespace torii
