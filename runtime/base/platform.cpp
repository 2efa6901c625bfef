// SPDX-License-Identifier: Apache-2.0
// The services of Linux.
#include "runtime/base/platform.hpp"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <limits>

namespace torii {
namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;

timespec timespec_of(std::int64_t ns) noexcept {
  return {static_cast<time_t>(ns / kNsPerSecond), static_cast<long>(ns % kNsPerSecond)};
}

Platform the_system;
/// Changes only while no thread is inside the library, so nothing is ordered by it.
std::atomic<Platform*> current = &the_system;

}  // namespace

std::int64_t Platform::now_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kNsPerSecond + now.tv_nsec;
}

bool Platform::grants(std::size_t) noexcept { return true; }

std::optional<std::size_t> Platform::memory_left_bytes() noexcept { return {}; }

void Platform::yield() noexcept { sched_yield(); }

void Platform::sleep(std::int64_t ns) noexcept {
  const timespec most = timespec_of(ns);
  nanosleep(&most, nullptr);
}

void Platform::wait(const std::atomic<std::uint32_t>& word, std::uint32_t value, std::int64_t most_ns) noexcept {
  const timespec most = timespec_of(most_ns);
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &most, nullptr, 0);
}

void Platform::wake_all(const std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
}

int Platform::poll(pollfd* entries, std::size_t count, std::int64_t most_ns) noexcept {
  const timespec most = timespec_of(most_ns);
  return ppoll(entries, count, &most, nullptr);
}

bool Platform::join_fences() noexcept {
  static std::atomic<bool> has_joined = false;
  if (has_joined.load(std::memory_order_relaxed)) return true;
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) != 0) return false;
  has_joined.store(true, std::memory_order_relaxed);
  return true;
}

bool Platform::fence_all() noexcept { return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0; }

int Platform::cpu() noexcept { return sched_getcpu(); }

Hop Platform::hop(const CpuSet& taken) noexcept { return torii::hop(taken); }

Platform& platform() noexcept { return *current.load(std::memory_order_relaxed); }

void set_platform(Platform* other) noexcept {
  current.store(other != nullptr ? other : &the_system, std::memory_order_relaxed);
}

}  // namespace torii
