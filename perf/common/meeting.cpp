// SPDX-License-Identifier: Apache-2.0
// The barrier in shared memory and the clock.
#include "perf/common/meeting.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <vector>

#include "perf/common/failure.hpp"

namespace torii::perf {

struct Meeting::Page {
  alignas(64) std::atomic<uint32_t> arrived;
  alignas(64) std::atomic<uint32_t> generation;
};

namespace {

constexpr size_t kPageBytes = 4096;
constexpr int64_t kDeadlineNs = 30'000'000'000;

/// Who waits for that long waits for a call that a network makes slow, and must not take the CPUs from what serves the
/// network: in the laboratory that is this machine's kernel.
constexpr int64_t kNsBeforeNap = 20'000'000;

/// A nap is short beside the time waited so far, since who oversleeps starts late.
void nap(int64_t waited_ns) {
  const timespec time = {0, std::min<int64_t>(waited_ns / 128, 1'000'000)};
  nanosleep(&time, nullptr);
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

Meeting::Meeting(const Job& job) : job_(job), memory_(job, kPageBytes) {
  static_assert(sizeof(Page) <= kPageBytes && std::atomic<uint32_t>::is_always_lock_free);
  polls_before_yield_ = oversubscribed(job) ? 50 : 20000;
  // New memory is all zero, which is the state of the two counters before the first meeting.
  page_ = reinterpret_cast<Page*>(memory_.data());
}

bool oversubscribed(const Job& job) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof(mine), &mine);
  std::vector<cpu_set_t> sets(static_cast<size_t>(job.ranks()));
  job.gather_bytes(&mine, sets.data(), sizeof(mine));
  cpu_set_t all = mine;
  for (const cpu_set_t& set : sets) CPU_OR(&all, &all, &set);
  return job.ranks() > CPU_COUNT(&all);
}

void Meeting::wait() {
  if (page_ == nullptr) return job_.barrier();
  const uint32_t generation = page_->generation.load(std::memory_order_acquire);
  if (page_->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(job_.ranks())) {
    page_->arrived.store(0, std::memory_order_relaxed);
    page_->generation.store(generation + 1, std::memory_order_release);
    return;
  }
  const int64_t begun_ns = now_ns();
  for (int64_t polls = 0; page_->generation.load(std::memory_order_acquire) == generation; ++polls) {
    if (polls < polls_before_yield_) {
      relax();
      continue;
    }
    const int64_t waited_ns = now_ns() - begun_ns;
    if (waited_ns < kNsBeforeNap) {
      sched_yield();
    } else {
      nap(waited_ns);
    }
    if (waited_ns > kDeadlineNs) throw Failure(kTimeout, "a rank did not come to the barrier between calls for 30 s");
  }
}

}  // namespace torii::perf
