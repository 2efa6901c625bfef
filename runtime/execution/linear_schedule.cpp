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

/// Slots from the one that is being filled to the one whose lines are claimed.
constexpr std::uint64_t kClaimedAhead = 4;
constexpr std::size_t kClaimedBytesMax = 4 * kLineBytes;

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

/// The credit of the slot's last message; and once it is there, how much further the peer has come. Looking costs the
/// line that the peer writes its credits to, so a ring of slots is looked at once a round while the peer keeps up. The
/// peer gives a credit of one call after it has taken all messages of the calls before: the acquire that sees the one
/// happens after all the peer's reads of the others. Words of a mapped peer change in order; others may overtake each
/// other on their way, so there every credit is waited for by itself.
bool may_fill(const RunningCall& call, const StraightEnd& target, std::uint64_t message) noexcept {
  if (!call.is_credited(target.credit_words, message, call.model == nullptr ? target.credit_group : 1)) return false;
  if (target.free_until == nullptr || call.segments_base == 0) return true;
  const std::uint64_t last = call.segments_base * target.messages - 1;
  if (load_word(target.credit_words + call.slot(last) * sizeof(std::uint64_t)) == last + 1) {
    *target.free_until = call.plan->last_begun * target.messages + call.ring.slots;
  }
  return true;
}

/// Claims the lines of a slot of the near future, if it is known to be free: calls in a row then do not wait for one
/// slot's lines after the other. Longer payloads are left to the processor, which sees where their stores lead. A
/// function of its own, because inside the loop it made calls of cells slower, which do not need it.
[[gnu::noinline]] void claim(const RunningCall& call, const StraightEnd& target, std::uint64_t message,
                             std::size_t bytes) noexcept {
  if (message >= *target.free_until) return;
  const std::size_t slot_offset = call.slot(message) * target.stride;
  claim_line(target.slots + slot_offset);
  if (bytes > kClaimedBytesMax || target.payload_offset < kLineBytes || !target.stores) return;
  const std::byte* const payload = target.payload_slots + slot_offset + target.payload_offset;
  for (std::size_t at = 0; at < bytes; at += kLineBytes) claim_line(payload + at);
}

}  // namespace

inline bool LinearSchedule::is_ready(const RunningCall& call, const StraightStep& step) noexcept {
  const std::uint64_t base = call.segments_base;
  const StraightEnd* sources = straight_->sources.data() + step.first_source;
  for (; sources_seen_ < step.source_count; ++sources_seen_) {
    const StraightEnd& source = sources[sources_seen_];
    if (source.own) continue;
    const std::uint64_t message = base * source.messages + source.position;
    const std::size_t slot_offset = call.slot(message) * source.stride;
    if (load_word(source.slots + slot_offset) != signal_word(call.signature, message)) return false;
    sources_[sources_seen_] = source.payload_slots + slot_offset + source.payload_offset;
  }
  const StraightEnd* targets = straight_->targets.data() + step.first_target;
  for (std::uint32_t i = 0; i < step.target_count; ++i) {
    const StraightEnd& target = targets[i];
    if (!target.credits) continue;
    const std::uint64_t message = base * target.messages + target.position;
    const std::uint64_t free_until = target.free_until != nullptr ? *target.free_until : 0;
    if (message < std::max(free_until, call.ring.slots)) continue;
    if (!may_fill(call, target, message)) return false;
  }
  return true;
}

inline void LinearSchedule::move(const RunningCall& call, const StraightStep& step) noexcept {
  const StraightEnd* sources = straight_->sources.data() + step.first_source;
  const std::uint64_t base = call.segments_base;
  const auto own = reinterpret_cast<const void*>(call.buffers.input + step.offset_bytes);
  for (std::uint32_t i = 0; i < step.source_count; ++i) {
    if (sources[i].own) sources_[i] = own;
  }
  const StraightEnd* targets = straight_->targets.data() + step.first_target;
  std::uint32_t count = 0;
  if (step.keep) targets_[count++] = reinterpret_cast<void*>(call.buffers.result + step.offset_bytes);
  for (std::uint32_t i = 0; i < step.target_count; ++i) {
    if (!targets[i].stores) continue;
    const std::uint64_t message = base * targets[i].messages + targets[i].position;
    targets_[count++] = targets[i].payload_slots + call.slot(message) * targets[i].stride + targets[i].payload_offset;
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
  if (step.source_count > 1) {
    fold(*call.shape,
         {.sources = sources_.data(),
          .source_count = static_cast<int>(step.source_count),
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
  const StraightEnd* targets = straight_->targets.data() + step.first_target;
  for (std::uint32_t i = 0; i < step.target_count; ++i) {
    const StraightEnd& target = targets[i];
    if (!target.ends_bundle) continue;
    const std::uint64_t message = base * target.messages + target.position;
    const std::size_t bytes = step.length_bytes * target.bundle;
    const std::size_t slot_offset = call.slot(message) * target.stride;
    const std::uint64_t word = signal_word(call.signature, message);
    if (target.sleeping != nullptr) {
      store_word(target.slots + slot_offset, word);
      if (target.sleeping->load(std::memory_order_relaxed) != 0) call.transport.ring(target.peer);
      if (target.claims) claim(call, target, message + kClaimedAhead, step.length_bytes);
      call.engines.rotate(bytes);
      continue;
    }
    Put put;
    put.peer = target.peer;
    put.bytes = step.source_count != 0 ? bytes : 0;  // tokens have no payload
    put.signal_offset = target.slots_offset + slot_offset;
    put.signal = word;
    if (target.remote) {
      put.source = target.payload_slots + slot_offset + target.payload_offset - target.bundle_offset;
      put.line_before = target.stores;
    }
    post(call, put, target.remote ? engine_of(call, call.plan->out[target.stream], message) : call.engines.next());
  }
  const StraightEnd* sources = straight_->sources.data() + step.first_source;
  for (std::uint32_t i = 0; i < step.source_count; ++i) {
    const StraightEnd& source = sources[i];
    if (source.own || !source.credits || !source.ends_bundle) continue;
    const std::uint64_t message = base * source.messages + source.position;
    if (source.remote) {
      give_credit(call, call.plan->in[source.stream], message);
    } else if (source.sleeping == nullptr) {
      credit(call, source.peer, source.credits_offset, message);
    } else {
      store_word(source.credit_words + call.slot(message) * sizeof(std::uint64_t), message + 1);
      if (source.sleeping->load(std::memory_order_relaxed) != 0) call.transport.ring(source.peer);
    }
  }
}

Progress LinearSchedule::advance(RunningCall& call) noexcept {
  const std::size_t begun = at_;
  while (at_ < straight_->steps.size()) {
    const StraightStep& step = straight_->steps[at_];
    if (!is_ready(call, step)) return at_ == begun ? Progress::idle : Progress::moved;
    if (step.length_bytes != 0 && step.source_count != 0) move(call, step);
    signal(call, step);
    if (call.status != Status::ok) return Progress::idle;
    sources_seen_ = 0;
    ++at_;
  }
  return call.finish() ? Progress::done : Progress::idle;
}

Stall LinearSchedule::stall() const noexcept {
  Stall stall;
  if (at_ == straight_->steps.size()) return stall;
  const StraightStep& step = straight_->steps[at_];
  stall.label = "one segment";
  if (sources_seen_ < step.source_count) {
    stall.peer = straight_->sources[step.first_source + sources_seen_].peer;
  } else if (step.target_count != 0) {
    stall.peer = straight_->targets[step.first_target].peer;
  }
  return stall;
}

}  // namespace torii
