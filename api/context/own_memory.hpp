// SPDX-License-Identifier: Apache-2.0
// The memory of this rank that peers reach: its arena, and what of the caller's memory is in it.
#pragma once

#include <memory>

#include "api/context/founding_boards.hpp"
#include "api/context/late_writers.hpp"
#include "api/context/regions.hpp"
#include "transports/shared_memory/arena.hpp"

namespace torii {

/// Contexts of one process may share it: what was allocated or registered with one of them is there for all.
struct OwnMemory {
  std::unique_ptr<shared_memory::Arena> arena;
  std::unique_ptr<LateWriters> late_writers;
  std::unique_ptr<Regions> regions;
  std::unique_ptr<RestingBoards> boards;
};

}  // namespace torii
