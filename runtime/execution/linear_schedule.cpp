// SPDX-License-Identifier: Apache-2.0
// Straight lists: the same waits, folds, signals and credits as the window schedule's, without its choice of lanes and
// segments. A call of 8 bytes is a line there and a line back, so here every instruction counts.
#include "runtime/execution/linear_schedule.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/execution/data_mover.hpp"
#include "runtime/execution/sending.hpp"
#include "runtime/execution/waiting.hpp"
#include "runtime/execution/words.hpp"

namespace torii {
namespace {

constexpr std::size_t kQuarterBytes = kLineBytes / 4;

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

}  // namespace

inline bool LinearSchedule::is_ready(const RunningCall& call, const StraightStep& step) noexcept {
  const std::uint64_t base = call.segments_base;
  for (; sources_seen_ < step.sources.size(); ++sources_seen_) {
    const StraightSource& source = step.sources[sources_seen_];
    if (source.own) continue;
    const std::uint64_t message = base * source.messages + source.position;
    const std::size_t offset = source.ring.offset(call.slots, message);
    if (!source.ring.arrived_at(offset, call.signature, message)) return false;
    sources_[sources_seen_] = source.payload + offset;
  }
  for (const StraightTarget& target : step.targets) {
    if (!target.ring.may_fill(call, call.slots, base * target.messages + target.position)) return false;
  }
  return true;
}

inline void LinearSchedule::move(const RunningCall& call, const StraightStep& step) noexcept {
  const std::uint64_t base = call.segments_base;
  const auto own = reinterpret_cast<const void*>(call.buffers.input + step.offset_bytes);
  for (std::size_t i = 0; i < step.sources.size(); ++i) {
    if (step.sources[i].own) sources_[i] = own;
  }
  std::uint32_t count = 0;
  if (step.keep) targets_[count++] = reinterpret_cast<void*>(call.buffers.result + step.offset_bytes);
  for (const StraightTarget& target : step.targets) {
    if (!target.stores) continue;
    targets_[count++] = target.payload + target.ring.offset(call.slots, base * target.messages + target.position);
  }
  if (count == 0) return;
  if (!step.may_stream) {
    store(call, step, count, false);
    return;
  }
  store_and_time(call.plan->stores[step.flow].slots, step.length_bytes * (count - (step.keep ? 1 : 0)),
                 [&](bool streaming) { store(call, step, count, streaming); });
}

/// Folds or copies into the first `count` of targets_. A fold goes into the first one, which stays in the caches if
/// others are copied from it; the own result, where there is one, stands first.
inline void LinearSchedule::store(const RunningCall& call, const StraightStep& step, std::uint32_t count,
                                  bool streaming) noexcept {
  std::uint32_t first = 0;
  const void* value = sources_[0];
  if (step.sources.size() > 1) {
    fold(*call.shape,
         {.sources = sources_.data(),
          .source_count = static_cast<int>(step.sources.size()),
          .targets = targets_.data(),
          .target_count = 1,
          .streaming_targets = streaming && count == 1 ? 1U : 0U},
         step.length_bytes / call.shape->element_bytes, step.fold);
    value = targets_[0];
    first = 1;
  }
  for (std::uint32_t i = first; i < count; ++i) {
    if (targets_[i] == value) continue;
    if (streaming && !(step.keep && i == 0)) {
      kernels::copy(targets_[i], value, step.length_bytes, true);
    } else {
      copy_short(targets_[i], value, step.length_bytes);
    }
  }
}

inline void LinearSchedule::signal(RunningCall& call, const StraightStep& step) noexcept {
  const std::uint64_t base = call.segments_base;
  for (const StraightTarget& target : step.targets) {
    if (!target.signals) continue;
    target.ring.signal(call, call.signature, base * target.messages + target.position, target.signalled_bytes);
  }
  for (const StraightSource& source : step.sources) {
    if (source.releases) source.ring.release(call, base * source.messages + source.position);
  }
}

Progress LinearSchedule::advance(RunningCall& call) noexcept {
  const StraightStep* const begun = next_;
  for (; next_ != end_; ++next_) {
    const StraightStep& step = *next_;
    if (!is_ready(call, step)) return next_ == begun ? Progress::idle : Progress::moved;
    if (step.length_bytes != 0 && !step.sources.empty()) move(call, step);
    signal(call, step);
    if (call.status != Status::ok) return Progress::idle;
    sources_seen_ = 0;
  }
  return call.finish() ? Progress::done : Progress::idle;
}

Stall LinearSchedule::stall() const noexcept {
  Stall stall;
  if (next_ == end_) return stall;
  stall.label = "one segment";
  if (sources_seen_ < next_->sources.size()) {
    stall.peer = next_->sources[sources_seen_].ring.peer();
  } else if (!next_->targets.empty()) {
    stall.peer = next_->targets.front().ring.peer();
  }
  return stall;
}

}  // namespace torii
