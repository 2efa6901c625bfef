// SPDX-License-Identifier: Apache-2.0
// The services of the operating system that a simulation replaces: the clock, yielding, sleeping and waking, the CPU of
// a thread, fences on behalf of others, and the grant of shared memory.
#pragma once

#include <poll.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/base/cpu_hop.hpp"

namespace torii {

/// The operating system's services. A simulation derives from this class and puts its own in their place. Any thread
/// may call the functions.
class Platform {
 public:
  virtual ~Platform() = default;
  /// Nanoseconds of a clock that all processes of the machine share.
  virtual std::int64_t now_ns() noexcept;
  virtual void yield() noexcept;
  virtual void sleep(std::int64_t ns) noexcept;
  /// Sleeps until wake_all() of the same word, `most_ns` at the longest; not at all if the word does not hold `value`.
  /// The word may be in memory that processes share.
  virtual void wait(const std::atomic<std::uint32_t>& word, std::uint32_t value, std::int64_t most_ns) noexcept;
  virtual void wake_all(const std::atomic<std::uint32_t>& word) noexcept;
  /// Sleeps until a descriptor is ready, `most_ns` at the longest; fills in the entries and returns as ppoll() does.
  virtual int poll(pollfd* entries, std::size_t count, std::int64_t most_ns) noexcept;
  /// From now on fence_all() of any process reaches the threads of this one. False where the system has no such fences,
  /// or refuses. The first call in a process of several threads takes some 10 ms.
  virtual bool join_fences() noexcept;
  /// A full fence now in every thread of all processes that have joined, and in this one; about a microsecond. False:
  /// the system refuses.
  virtual bool fence_all() noexcept;
  /// The number of the CPU that runs the calling thread; -1: unknown. A hint: sandboxes say the same to all threads.
  virtual int cpu() noexcept;
  /// As torii::hop().
  virtual Hop hop(const CpuSet& taken) noexcept;
  /// True if this process may ask for so many bytes of shared memory. The system always says yes, and may still have no
  /// pages when it is asked for them; a simulation refuses here.
  virtual bool grants(std::size_t bytes) noexcept;
  /// The memory that the process may still use, if a simulation decides that; nothing: ask the limits of the machine.
  virtual std::optional<std::size_t> memory_left_bytes() noexcept;
};

/// The platform of this process.
Platform& platform() noexcept;
/// From now on the process uses `other`, which must outlive that; nullptr: the operating system. No thread may be
/// inside the library meanwhile.
void set_platform(Platform* other) noexcept;

inline std::int64_t now_ns() noexcept { return platform().now_ns(); }

}  // namespace torii
