// SPDX-License-Identifier: Apache-2.0
// Real vectors in a simulation: the comparison of all results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reduce_kernels/types.hpp"
#include "runtime/plan/operation.hpp"

namespace torii::tools {

struct Compared {
  /// Ranks whose result differs from that of the first rank with a result; in an alltoall, scatter or gather, from what
  /// was sent to them.
  int wrong = 0;
  std::uint64_t hash = 0;  ///< XXH3-64 of the result; of all results for reduce_scatter and personalised blocks
};

/// A call with operands of fill_operand().
struct Comparison {
  Collective collective = Collective::allreduce;
  int root = 0;
  Type type = Type::f32;
  std::uint64_t seed = 1;
};

/// `results`: by rank, the whole vector of the layout.
Compared compare(const Comparison& call, const std::vector<std::vector<std::byte>>& results);

}  // namespace torii::tools
