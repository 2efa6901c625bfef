// SPDX-License-Identifier: Apache-2.0
// Counts memory of arenas, descriptors and bytes of the heap.
#include "tools/torii-sim/faults/leak_check.hpp"

#include <dirent.h>

#include <memory>

#include "api/c/c_objects.hpp"
#include "tools/torii-sim/faults/heap.hpp"

namespace torii::faults {

Holdings holdings() {
  Holdings held;
  held.heap_bytes = heap_bytes();
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), closedir);
  while (folder != nullptr && readdir(folder.get()) != nullptr) ++held.descriptors;
  return held;
}

std::string difference(const Holdings& before, const Holdings& now) {
  if (now.descriptors <= before.descriptors) return "";
  return std::to_string(now.descriptors - before.descriptors) + " descriptors are left open";
}

void expect_empty(SimulatedJob& job, torii_context& context, const shared_memory::Arena& arena, std::size_t bytes,
                  int rank) {
  constexpr int kLooksMost = 4000;
  constexpr std::size_t kMoreThanAll = std::size_t{1} << 50;
  for (int look = 0; look < kLooksMost; ++look) {
    // A request that cannot be met gives back what is kept for later teams.
    void* address = nullptr;
    if (torii_allocate(&context, kMoreThanAll, &address) == TORII_OK) job.fail(rank, "got more memory than there is");
    if (arena.used_bytes() <= bytes) return;
    (void)context.context.transport().progress();
    job.fibers.sleep(fibers::kMillisecond);
  }
  job.fail(rank, std::to_string(arena.used_bytes() - bytes) + " bytes of the arena are left allocated");
}

}  // namespace torii::faults
