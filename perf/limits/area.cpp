// SPDX-License-Identifier: Apache-2.0
// Counters, lines and slots in memory that all ranks map.
#include "perf/limits/area.hpp"

#include <sched.h>

#include <cstring>

#include "perf/common/failure.hpp"
#include "perf/common/meeting.hpp"

namespace torii::perf {

namespace {

constexpr size_t kCellBytes = 4096;
constexpr size_t kSlotsBytes = kAreaSlots * kAreaSlotBytes;
constexpr int64_t kDeadlineNs = 30'000'000'000;

}  // namespace

Area::Area(const Job& job)
    : job_(job),
      memory_(job, static_cast<size_t>(job.ranks()) * (kCellBytes + 2 * kSlotsBytes)),
      known_done_(static_cast<size_t>(job.ranks())),
      polls_before_yield_(oversubscribed(job) ? 50 : 20000) {
  static_assert(sizeof(AreaCell) <= kCellBytes && std::atomic<uint64_t>::is_always_lock_free);
}

AreaCell& Area::cell(int rank) {
  // New memory is all zero, which is the state of counters and lines before the first step, number 1.
  return *reinterpret_cast<AreaCell*>(memory_.data() + static_cast<size_t>(rank) * kCellBytes);
}

std::byte* Area::slots(int rank, int kind) {
  return memory_.data() + static_cast<size_t>(ranks()) * kCellBytes +
         static_cast<size_t>(2 * rank + kind) * kSlotsBytes;
}

void Area::await_done(int rank, uint64_t step) {
  uint64_t& known = known_done_[static_cast<size_t>(rank)];
  if (known >= step) return;
  await(cell(rank).done, step);
  known = cell(rank).done.load(std::memory_order_acquire);
}

void Area::write_line(uint64_t step, const void* data, size_t bytes) {
  AreaCell::Line& line = cell(rank()).lines[step % kAreaSlots];
  std::memcpy(line.data.data(), data, bytes);
  line.step.store(step, std::memory_order_release);
}

const std::byte* Area::await_line(int rank, uint64_t step) {
  const AreaCell::Line& line = cell(rank).lines[step % kAreaSlots];
  await(line.step, step);
  return line.data.data();
}

void Area::await(const std::atomic<uint64_t>& counter, uint64_t at_least) const {
  int64_t begun_ns = 0;
  for (int polls = 0; counter.load(std::memory_order_acquire) < at_least; ++polls) {
    if (polls < polls_before_yield_) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
      continue;
    }
    sched_yield();
    if (begun_ns == 0) begun_ns = now_ns();
    if (now_ns() - begun_ns > kDeadlineNs) throw Failure(kTimeout, "a rank did not come to a loop's step for 30 s");
  }
}

}  // namespace torii::perf
