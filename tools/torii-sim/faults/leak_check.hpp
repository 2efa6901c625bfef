// SPDX-License-Identifier: Apache-2.0
// Finds memory that a history leaves allocated, although all its ranks have closed all they had.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tools/torii-sim/faults/simulated_job.hpp"
#include "transports/shared_memory/arena.hpp"

namespace torii::faults {

/// Resources of this process.
struct Holdings {
  std::int64_t heap_bytes = 0;
  std::size_t descriptors = 0;
};
Holdings holdings();
/// Empty, or what `now` has more than `before`, apart from the heap.
std::string difference(const Holdings& before, const Holdings& now);

/// Waits until no rank writes into the memory of the rank's former teams, which may take a while. Afterwards its arena
/// must hold `bytes` again, as it did when the context was made.
void expect_empty(SimulatedJob& job, torii_context& context, const shared_memory::Arena& arena, std::size_t bytes,
                  int rank);

}  // namespace torii::faults
