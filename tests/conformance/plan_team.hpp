// SPDX-License-Identifier: Apache-2.0
// Plans run by the executor itself, ranks as threads, below the public interface: plans may be changed on purpose and
// the transport may be faulty.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/selection/catalogue.hpp"
#include "reduce_kernels/types.hpp"
#include "runtime/base/status.hpp"
#include "runtime/execution/store_choice.hpp"
#include "runtime/rings/ring_area.hpp"
#include "tests/support/faulty.hpp"

namespace torii::tests {

struct PlanRun {
  std::vector<Plan>
      plans;  ///< of all ranks, in order; of broadcast, reduce or allreduce, or a pairwise exchange (whole blocks)
  Collective collective = Collective::allreduce;  ///< the blocks of personalised ones follow each other without gaps
  Tuning tuning;
  bool wide = false;  ///< streams marked wide hold float
  Type type = Type::f32;
  Op op = Op::sum;
  std::size_t count = 1;   ///< elements
  int calls = 1;           ///< one after the other, with nothing between them but the plan's own tokens
  bool allocated = false;  ///< buffers lie in the arena, where peers read and write them
  bool in_place = false;   ///< the input is the result's memory
  bool gathers = false;    ///< vectors in the arena go to other nodes from where they stand
  std::optional<std::int64_t> forged_offset;   ///< rank 0 says that its vectors stand there in its arena
  std::optional<std::uint64_t> arena_ends_at;  ///< where peers say that an arena ends
  bool program = false;                        ///< as a linear program where the plan has that form
  int slots_least = 1;                         ///< the algorithm's declared least slots
  std::optional<RingSizes> rings;              ///< the standing rings' sizes; nothing: as a team would have them
  std::optional<StoreChoice::Way> stores;  ///< the way of all stores into peers' memory; found by timing when not given
  std::vector<int> nodes;                  ///< of each rank; none: all stand on one
  bool cross_memory = false;               ///< operands are always read out of the lender's private memory
  faulty::Faults faults;                   ///< the seed is drawn anew for each rank
  bool relaxed_signals = false;            ///< planted: signals to other nodes are stored in no order with the payload
  bool ignores_counts = false;             ///< planted: senders take all messages for taken that they will ever send
  double deadline_s = 20;                  ///< of each call
};

struct PlanOutcome {
  /// [rank][call]: the result as each rank holds it.
  std::vector<std::vector<std::vector<std::byte>>> results;
  std::vector<Status> status;      ///< by rank; timeout when a call did not end before the deadline
  std::uint64_t delays = 0;        ///< puts of all ranks that were delayed
  std::uint64_t distant_puts = 0;  ///< puts and credits of all ranks to other nodes
  int targets_most = 0;            ///< of any rank: peers on other nodes to which payload was under way at once
  std::vector<std::uint64_t> engine_bytes;  ///< by engine: what it has carried for all ranks
  std::uint64_t reads = 0;                  ///< of all ranks, out of peers' private memory
  std::vector<std::uint32_t> turns;         ///< by rank: how many calls it has counted (CallTurns)
  std::vector<std::string> refusals;        ///< by rank: what a peer has told it that cannot be
  std::uint64_t puts_from_vectors = 0;      ///< of all ranks, to other nodes, payload from input or result
  bool ok() const;
  bool has_results_of(const PlanOutcome& other) const;
  bool has_results_of(const PlanOutcome& other, std::size_t rank) const;
};

/// Writes the operand of `rank` in call number `call`.
using FillOperand = std::function<void(int rank, int call, std::byte* out)>;

/// Random operands of this run, other ones in each call. The run must outlive it.
FillOperand filler(const PlanRun& run);

PlanOutcome run_plans(const PlanRun& run, const FillOperand& fill);

/// A run of the named algorithm's plans. The algorithm must accept the request.
PlanRun make_run(std::string_view algorithm, const PlanRequest& request, std::size_t count);

}  // namespace torii::tests
