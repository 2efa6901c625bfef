// SPDX-License-Identifier: Apache-2.0
// The verifier: proves a plan set right for every length, or says in sentences what is wrong with it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collectives/proof/executor_rules.hpp"
#include "collectives/selection/catalogue.hpp"
#include "runtime/plan/expression.hpp"
#include "runtime/plan/plan.hpp"

namespace torii {

/// How much each proof was about. A figure of 0: the plans have no such thing.
struct Proofs {
  int results = 0;         ///< data: result blocks, each on one rank
  int steps = 0;           ///< no deadlock: steps of all ranks within one segment
  int writes = 0;          ///< buffers: writes of result blocks within one segment
  int rings = 0;           ///< streams from one rank to another: the most of any pair
  int bundled = 0;         ///< streams of bundles
  int shared = 0;          ///< streams that share another stream's copy of the payload
  int read_in_place = 0;   ///< streams
  int write_in_place = 0;  ///< streams
  int read_privately = 0;  ///< streams whose readers may copy out of the sender's private memory
  int offers = 0;          ///< pairs of ranks of which one makes buffer offers to the other
  int sent_in_place = 0;   ///< flows whose value engines may send from the caller's vector
  int lists = 0;           ///< ranks that run a linear program if the vector has one segment
  int transfers = 0;       ///< of a pairwise exchange: blocks in place, in portions, with one signal or one release
};

/// The result of the verifier. The figures are meaningful only when ok().
struct Verdict {
  std::vector<std::string> faults;   ///< sentences that name rank, lane, flow, block and stream; at most 20
  int slots_least = 0;               ///< fewest slots with which nothing deadlocks
  double busiest_link_messages = 0;  ///< messages per segment over the busiest directed link (0 on a node)
  int links_shared = 0;              ///< directed links on which two messages of one step meet
  double links_shared_percent = 0;   ///< of all directed links
  Proofs proofs;
  int height = 0;  ///< longest chain of messages between ranks within one segment
  /// The expression that every rank with a result holds, per block; in an alltoall per pair (sender * ranks +
  /// receiver). A barrier has none; scan and exscan, whose plans have one block, have one per rank.
  std::vector<ExpressionId> result_expression;
  bool ok() const { return faults.empty(); }
};

/// The expression that an algorithm says it computes for the elements of a block; of scan and exscan, for a rank.
using DeclaredOrder = std::function<ExpressionId(int block, ExpressionPool& pool)>;

/// Proves for `plans` (one per rank, in order), whatever the number of segments:
///  - structure: both ends of every stream agree, every message is produced once and consumed once;
///  - data: each rank's operand enters each result once. All ranks hold the same expression, which is the declared
///    order (and the canonical one if the request asks for it). In scan and exscan, the operands of the ranks before a
///    rank enter its result, in rank order;
///  - buffers: nothing is read before it is ready nor overwritten before its last read. This holds with input and
///    result separate or the same memory, and with read_in_place and write_in_place streams by value or in place, in
///    any mixture;
///  - no deadlock: the folded graph has no cycle of weight 0 (verify_precedence.hpp);
///  - counts: nothing deadlocks where a sender waits until all messages up to the one that had its slot have been
///    taken, even if it learns this as late as `rules` have it;
///  - rings: by `rules`, both ends of a stream use the same ring, which no other stream of the two ranks uses;
///  - shortcuts: copies, buffer offers, waits and signals that the executor leaves out, by `rules`, are not missed;
///  - an alltoall in place needs no copy of its input where ranks run it as a linear program.
/// Expressions are made in `pool`. `order` may be empty.
Verdict verify(const PlanRequest& request, std::span<const Plan> plans, ExpressionPool& pool,
               const DeclaredOrder& order = {}, const ExecutorRules& rules = {});

/// Plans every rank with `algorithm` and verifies the set against the algorithm's declared order and least slots. A
/// request that the algorithm refuses is a fault.
Verdict verify(const Algorithm& algorithm, const PlanRequest& request, ExpressionPool& pool);
Verdict verify(const Algorithm& algorithm, const PlanRequest& request);

/// The figures of a plan set alone (height, busiest link, shared links), for more ranks than can be proved. Of the
/// proofs only structure and a cycle are made.
Verdict measure(const PlanRequest& request, std::span<const Plan> plans);

/// The plans of all ranks, in order.
std::vector<Plan> plan_all(const Algorithm& algorithm, const PlanRequest& request);

}  // namespace torii
