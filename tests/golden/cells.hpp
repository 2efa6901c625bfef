// SPDX-License-Identifier: Apache-2.0
// The cells of the golden files: each is a key and the value that the library computes now.
#pragma once

#include <string>
#include <string_view>

#include "runtime/plan/operation.hpp"
#include "tests/golden/golden_file.hpp"

namespace torii::golden {

/// All collectives, in the order of the files.
inline constexpr Collective kCollectives[] = {Collective::barrier,   Collective::broadcast,  Collective::reduce,
                                              Collective::allreduce, Collective::all_gather, Collective::reduce_scatter,
                                              Collective::alltoall,  Collective::scatter,    Collective::gather,
                                              Collective::scan,      Collective::exscan};

/// plans.txt: the digest of the plans of all ranks and of the declared order, or `refused: TEXT`. Each text of a
/// refusal is listed once per catalogue row and collective, at the first cell that has it.
Lines plan_lines();
/// selection.txt: what select() chooses with the built-in table, freely and when an algorithm is forced.
Lines selection_lines();
/// results.txt: the digest of the result bits of all ranks, over shared memory and in the simulator. If the two differ,
/// the value is "shared DIGEST, simulated DIGEST".
Lines result_lines();

}  // namespace torii::golden
