// SPDX-License-Identifier: Apache-2.0
// Bytes of the heap in use by this thread. A program that links this file counts every new and delete.
#pragma once

#include <cstdint>

namespace torii::faults {

/// Allocated with new by this thread, less what it has deleted. Over-aligned objects do not count.
std::int64_t heap_bytes() noexcept;

}  // namespace torii::faults
