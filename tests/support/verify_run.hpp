// SPDX-License-Identifier: Apache-2.0
// Random runs: a small interpreter that executes a plan set symbolically, one step begun or ended at a time in random
// order, and watches memory. It knows nothing of the verifier's graph, so that one confirms the other.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/plan/expression.hpp"
#include "runtime/plan/plan.hpp"

namespace torii {

struct RandomRun {
  std::uint64_t seed = 1;
  int segments = 5;  ///< a barrier has one, whatever stands here
  int calls = 2;     ///< one after the other, with message numbers and slots that go on
  /// Above 0, a receiver publishes how many messages of a stream it has taken in order after so many of them, and at
  /// the end of its call; senders wait for that. 0: a sender waits for the message alone that had the slot.
  int counts_every = 0;
};

/// Runs `plans` with random speeds of ranks and lanes, random choice between in place and by value for every
/// read_in_place and write_in_place stream, and random choice of separate or equal input and result for every rank;
/// callers scribble over their buffers as soon as their call has ended. `expected` holds the expression of every block
/// (Verdict::result_expression; unused by a barrier). Returns an empty string when all went well, otherwise a sentence
/// that says what went wrong: a deadlock, a slot or buffer used by two at once, or a wrong result. Equal seeds give
/// equal runs.
std::string run_randomly(const PlanRequest& request, std::span<const Plan> plans,
                         std::span<const ExpressionId> expected, ExpressionPool& pool, const RandomRun& run);

}  // namespace torii
