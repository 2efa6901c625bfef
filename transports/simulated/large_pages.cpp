// SPDX-License-Identifier: Apache-2.0
// Asks the kernel for large pages.
#include "transports/simulated/large_pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace torii::simulated {
namespace {

constexpr int kCollapse = 25;  // MADV_COLLAPSE of Linux 6.1, which older headers lack

/// Where the heap began when the program did.
const void* const heap_begin = ::sbrk(0);

}  // namespace

void gather_in_large_pages(const void* begin, const void* end) noexcept {
  const std::uintptr_t first =
      (reinterpret_cast<std::uintptr_t>(begin) + kLargePageBytes - 1) / kLargePageBytes * kLargePageBytes;
  const std::uintptr_t last = reinterpret_cast<std::uintptr_t>(end) / kLargePageBytes * kLargePageBytes;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, kCollapse);
}

void gather_heap_in_large_pages() noexcept { gather_in_large_pages(heap_begin, ::sbrk(0)); }

}  // namespace torii::simulated
