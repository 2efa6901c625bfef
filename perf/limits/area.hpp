// SPDX-License-Identifier: Apache-2.0
// Memory that the hand-written loops share: for each rank three counters, short lines of data and slots.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "perf/common/job.hpp"
#include "perf/common/shared_memory.hpp"

namespace torii::perf {

inline constexpr int kAreaSlots = 4;
inline constexpr size_t kAreaSlotBytes = size_t{256} << 10;
inline constexpr size_t kAreaLineBytes = 56;

/// Words that one rank stores, and others read.
struct AreaCell {
  struct alignas(64) Line {
    std::atomic<uint64_t> step;
    std::array<std::byte, kAreaLineBytes> data;
  };
  alignas(64) std::atomic<uint64_t> ready;
  alignas(64) std::atomic<uint64_t> done;
  alignas(64) std::atomic<uint64_t> folded;
  std::array<Line, kAreaSlots> lines;
};

/// The steps of all ranks run alike, over all loops: each loop adds as many steps to each call on every rank. So a
/// counter only grows, and slot or line `step % kAreaSlots` is that of a step.
class Area {
 public:
  explicit Area(const Job& job);

  bool is_there() const { return memory_.data() != nullptr; }
  int rank() const { return job_.rank(); }
  int ranks() const { return job_.ranks(); }
  const Job& job() const { return job_; }

  uint64_t steps() const { return steps_; }
  void add_steps(uint64_t count) { steps_ += count; }

  /// A rank's data of `step` is there, or its input stands: stored with release after the data.
  void set_ready(uint64_t step) { cell(rank()).ready.store(step, std::memory_order_release); }
  void await_ready(int rank, uint64_t step) { await(cell(rank).ready, step); }
  /// A rank has read all of `step`, so that others may write there again.
  void set_done(uint64_t step) { cell(rank()).done.store(step, std::memory_order_release); }
  void await_done(int rank, uint64_t step);
  /// A rank's part of the fold of `step` is there.
  void set_folded(uint64_t step) { cell(rank()).folded.store(step, std::memory_order_release); }
  void await_folded(int rank, uint64_t step) { await(cell(rank).folded, step); }

  /// Data with its counter in one cache line: one transfer carries both.
  void write_line(uint64_t step, const void* data, size_t bytes);
  const std::byte* await_line(int rank, uint64_t step);

  std::byte* slot(int rank, uint64_t step) { return slots(rank, 0) + (step % kAreaSlots) * kAreaSlotBytes; }
  /// A slot for a rank's part of a fold.
  std::byte* result_slot(int rank, uint64_t step) { return slots(rank, 1) + (step % kAreaSlots) * kAreaSlotBytes; }

 private:
  AreaCell& cell(int rank);
  std::byte* slots(int rank, int kind);
  /// Acquire pairs with the release of who stored: what it wrote before is seen after. Throws Failure(kTimeout) when a
  /// rank has not come for 30 s.
  void await(const std::atomic<uint64_t>& counter, uint64_t at_least) const;

  const Job& job_;
  SharedMemory memory_;
  uint64_t steps_ = 0;
  std::vector<uint64_t> known_done_;  ///< by rank, so that its line is read only where it may have changed
  int polls_before_yield_;
};

}  // namespace torii::perf
