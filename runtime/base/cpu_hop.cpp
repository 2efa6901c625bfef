// SPDX-License-Identifier: Apache-2.0
// The steps of a hop. The kernel has no exchange of an affinity for another one, so they leave alone what they find
// changed, and a change by others is lost only if it falls into the microsecond between two system calls.
#include "runtime/base/cpu_hop.hpp"

#include <sched.h>

#include <cerrno>

#include "runtime/base/blocked_signals.hpp"

namespace torii {
namespace {

class OwnAffinity final : public Affinity {
 public:
  int cpu() noexcept override { return sched_getcpu(); }
  int get(CpuSet& cpus) noexcept override {
    return sched_getaffinity(0, CpuSet::kBytes, static_cast<cpu_set_t*>(cpus.data())) == 0 ? 0 : errno;
  }
  int set(const CpuSet& cpus) noexcept override {
    return sched_setaffinity(0, CpuSet::kBytes, static_cast<const cpu_set_t*>(cpus.data())) == 0 ? 0 : errno;
  }
};

/// The kernel keeps the mask that was asked for, and uses what is left of it in the thread's cpuset and online. A
/// thread that nobody has bound is given all CPUs again: with those of today alone it would never use one that comes
/// later.
void restore(Affinity& thread, const CpuSet& before) noexcept {
  CpuSet widest;
  if (thread.set(CpuSet::all()) == 0 && thread.get(widest) == 0 && widest == before) return;
  // If none of these CPUs is left, the thread keeps all that it may use, as the kernel would have it.
  (void)thread.set(before);
}

}  // namespace

Hop hop(Affinity& thread, const CpuSet& taken) noexcept {
  CpuSet before;
  if (thread.get(before) != 0) return Hop::impossible;
  CpuSet free = before;
  free.remove(taken);
  if (free.is_empty()) return Hop::not_made;
  if (const int error = thread.set(free); error != 0) {
    // EINVAL: none of these CPUs is left since they were read.
    return error == EINVAL ? Hop::not_made : Hop::impossible;
  }
  CpuSet found;
  if (thread.get(found) == 0 && found != free) return Hop::not_made;
  const bool is_there = free.has(thread.cpu());
  restore(thread, before);
  return is_there ? Hop::made : Hop::impossible;
}

Hop hop(const CpuSet& taken) noexcept {
  const BlockedSignals blocked;
  OwnAffinity thread;
  return hop(thread, taken);
}

}  // namespace torii
