// SPDX-License-Identifier: Apache-2.0
// The two ways of moving and the words by which the sides wait for each other.
#include "perf/kernels/slot_copy.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>

#include "reduce_kernels/kernels.hpp"

namespace torii::perf {
namespace {

constexpr auto kDeadline = std::chrono::seconds(10);
constexpr int kTimeoutCode = 4;
constexpr uint64_t kPollsBeforeYield = 4096;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Each side has a CPU of its own.
template <typename Condition>
void spin_until(const Condition& condition) {
  std::chrono::steady_clock::time_point deadline;
  for (uint64_t polls = 1; !condition(); ++polls) {
    // Whoever else wants this CPU may be what the other side waits for.
    polls % kPollsBeforeYield == 0 ? std::this_thread::yield() : relax();
    if (polls % (1 << 16) != 0) continue;
    const auto now = std::chrono::steady_clock::now();
    if (polls == 1 << 16) deadline = now + kDeadline;
    if (now <= deadline) continue;
    std::fputs("slot_copy_perf: the other side did not come for 10 s\n", stderr);
    std::_Exit(kTimeoutCode);
  }
}

}  // namespace

Exchange::Floats Exchange::make_floats(size_t bytes) {
  constexpr size_t kPageBytes = 4096;
  const size_t whole_bytes = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  Floats floats(static_cast<float*>(std::aligned_alloc(kPageBytes, whole_bytes)));
  if (floats == nullptr) throw std::bad_alloc();
  std::fill_n(floats.get(), whole_bytes / sizeof(float), 0.0f);
  return floats;
}

Exchange::Exchange(const MoveOptions& options) : options_(options) {
  for (int side = 0; side < 2; ++side) {
    inputs_[side] = make_floats(options.bytes);
    results_[side] = make_floats(options.bytes);
    const auto slots = static_cast<size_t>(options.slots);
    to_[side].memory = make_floats(slots * options.slot_bytes);
    to_[side].signals = std::make_unique<Word[]>(slots);
    to_[side].credits = std::make_unique<Word[]>(slots);
  }
}

void Side::meet() {
  const uint64_t all = 2 * ++meetings_;
  exchange_.arrived_.value.fetch_add(1, std::memory_order_acq_rel);
  spin_until([&] { return exchange_.arrived_.value.load(std::memory_order_acquire) >= all; });
}

void Side::run(Move move) { move == Move::slots ? run_slots() : run_mapped(); }

void Side::run_slots() {
  const MoveOptions& options = exchange_.options_;
  const size_t slot_floats = options.slot_bytes / sizeof(float);
  const size_t segments = (options.bytes + options.slot_bytes - 1) / options.slot_bytes;
  const auto slots = static_cast<uint64_t>(options.slots);
  Exchange::Direction& out = exchange_.to_[1 - side_];
  Exchange::Direction& in = exchange_.to_[side_];
  const auto bytes_of = [&](size_t segment) {
    return std::min(options.slot_bytes, options.bytes - segment * options.slot_bytes);
  };
  size_t sent = 0, taken = 0;
  // One try of each in turn, as a rank does that gives and takes at once.
  const auto advance = [&] {
    if (sent < segments) {
      const uint64_t message = messages_ + sent;
      const size_t slot = message % slots;
      const uint64_t needed = message < slots ? 0 : message - slots + 1;
      if (out.credits[slot].value.load(std::memory_order_acquire) >= needed) {
        kernels::copy(out.memory.get() + slot * slot_floats, exchange_.input(side_) + sent * slot_floats,
                      bytes_of(sent), options.non_temporal);
        if (options.non_temporal) kernels::store_fence();
        out.signals[slot].value.store(message + 1, std::memory_order_release);
        ++sent;
      }
    }
    if (taken < segments) {
      const uint64_t message = messages_ + taken;
      const size_t slot = message % slots;
      if (in.signals[slot].value.load(std::memory_order_acquire) == message + 1) {
        kernels::copy(exchange_.result(side_) + taken * slot_floats, in.memory.get() + slot * slot_floats,
                      bytes_of(taken), false);
        in.credits[slot].value.store(message + 1, std::memory_order_release);
        ++taken;
      }
    }
  };
  while (sent < segments || taken < segments) {
    const size_t before = sent + taken;
    advance();
    if (sent + taken != before) continue;
    spin_until([&] {
      advance();
      return sent + taken != before;
    });
  }
  messages_ += segments;
}

void Side::run_mapped() {
  // A call begins when both are there and ends when both are done, as an allreduce does.
  meet();
  const MoveOptions& options = exchange_.options_;
  const kernels::FoldFn fold = kernels::find(Op::sum, Type::f32);
  const size_t half = options.bytes / sizeof(float) / 2;
  const size_t begin = side_ == 0 ? 0 : half, end = side_ == 0 ? half : options.bytes / sizeof(float);
  const size_t piece = options.slot_bytes / sizeof(float);
  for (size_t at = begin; at < end; at += piece) {
    const void* sources[] = {exchange_.input(0) + at, exchange_.input(1) + at};
    void* targets[] = {exchange_.result(0) + at, exchange_.result(1) + at};
    kernels::Operands operands;
    operands.sources = sources;
    operands.source_count = 2;
    operands.targets = targets;
    operands.target_count = 2;
    operands.non_temporal_targets = options.non_temporal ? 1u << (1 - side_) : 0;
    fold(operands, std::min(piece, end - at));
  }
  if (options.non_temporal) kernels::store_fence();
  meet();
}

}  // namespace torii::perf
