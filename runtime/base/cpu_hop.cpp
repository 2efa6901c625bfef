// SPDX-License-Identifier: Apache-2.0
// The steps of a hop. The kernel has no exchange of an affinity for another one. A change by others is lost only if it
// falls between two system calls that follow each other at once; the one that waits for another CPU is looked behind.
#include "runtime/base/cpu_hop.hpp"

#include <sched.h>

#include <cerrno>

#include "runtime/base/blocked_signals.hpp"

namespace torii {
namespace {

class OwnAffinity final : public Affinity {
 public:
  int get(CpuSet& cpus) noexcept override {
    return sched_getaffinity(0, CpuSet::kBytes, static_cast<cpu_set_t*>(cpus.data())) == 0 ? 0 : errno;
  }
  int set(const CpuSet& cpus) noexcept override {
    return sched_setaffinity(0, CpuSet::kBytes, static_cast<const cpu_set_t*>(cpus.data())) == 0 ? 0 : errno;
  }
};

/// None of these CPUs is left since they were read, or there is no memory: another time it may go well.
Hop result_of(int error) noexcept { return error == EINVAL || error == ENOMEM ? Hop::not_made : Hop::impossible; }

/// The kernel keeps the mask that was asked for, and uses what is left of it in the thread's cpuset and online. So a
/// thread that nobody has bound is given all CPUs: with those of today alone it would never use one that comes later.
void restore(Affinity& thread, const CpuSet& before, bool is_bound) noexcept {
  if (thread.set(is_bound ? before : CpuSet::all()) == 0) return;
  // None of its CPUs is left, and it uses all there are, as the kernel would have it; or there is no memory.
  (void)thread.set(is_bound ? CpuSet::all() : before);
}

/// The thread was given other CPUs than those of the hop while it waited for its turn there: by somebody, whose choice
/// stays, or by a change of the cpuset, which shows in the widest affinity that it can have.
void restore_changed(Affinity& thread, const CpuSet& before, bool is_bound, const CpuSet& widest,
                     const CpuSet& found) noexcept {
  CpuSet now;
  if (thread.set(CpuSet::all()) != 0 || thread.get(now) != 0 || now != widest) {
    restore(thread, before, is_bound);
  } else if (found != widest) {
    (void)thread.set(found);
  }
}

/// CPUs of the first set that the second one does not have.
CpuSet without(CpuSet set, const CpuSet& others) noexcept {
  set.remove(others);
  return set;
}

}  // namespace

Hop hop(Affinity& thread, const CpuSet& taken) noexcept {
  CpuSet before;
  if (thread.get(before) != 0) return Hop::impossible;
  CpuSet free = without(before, taken);
  if (free.is_empty()) return Hop::not_made;
  // This moves no thread, so it does not wait.
  if (const int error = thread.set(CpuSet::all()); error != 0) return result_of(error);
  CpuSet widest;
  const bool is_bound = thread.get(widest) != 0 || !without(widest, before).is_empty();
  free.remove(without(before, widest));  // which have just gone
  if (const int error = thread.set(free); error != 0) {
    restore(thread, before, is_bound);
    return result_of(error);
  }
  CpuSet found;
  if (thread.get(found) == 0 && found != free) {
    restore_changed(thread, before, is_bound, widest, found);
    return Hop::not_made;
  }
  restore(thread, before, is_bound);
  return Hop::made;
}

Hop hop(const CpuSet& taken) noexcept {
  const BlockedSignals blocked;
  OwnAffinity thread;
  return hop(thread, taken);
}

}  // namespace torii
