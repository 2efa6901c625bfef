// SPDX-License-Identifier: Apache-2.0
// Large pages for the memory of many ranks: the addresses of gigabytes in small pages are in no cache either.
#pragma once

#include <cstddef>

namespace torii::simulated {

inline constexpr std::size_t kLargePageBytes = std::size_t{2} << 20;

/// Asks the kernel to gather what is between the addresses in large pages. If it refuses, the simulation is only
/// slower.
void gather_in_large_pages(const void* begin, const void* end) noexcept;
/// The same for all that is on the heap now.
void gather_heap_in_large_pages() noexcept;

}  // namespace torii::simulated
