// SPDX-License-Identifier: Apache-2.0
// The verifier: proves a plan set right for every length, or says in sentences what is wrong with it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collectives/proof/credit_rules.hpp"
#include "collectives/selection/catalogue.hpp"
#include "runtime/plan/expression.hpp"
#include "runtime/plan/plan.hpp"

namespace torii {

/// The result of the verifier. The figures are meaningful only when ok().
struct Verdict {
  std::vector<std::string> faults;   ///< sentences that name rank, lane, flow, block and stream; at most 20
  int slots_least = 0;               ///< fewest slots with which nothing deadlocks and every proof holds
  double busiest_link_messages = 0;  ///< messages per segment over the busiest directed link (0 on a node)
  int links_shared = 0;              ///< directed links on which two messages of one step meet
  double links_shared_percent = 0;   ///< of all directed links
  int height = 0;                    ///< longest chain of messages between ranks within one segment
  /// Per block, in an alltoall per pair (sender * ranks + receiver): what every rank that has a result holds (barrier:
  /// empty). Of scan and exscan, whose plans have one block, per rank.
  std::vector<ExpressionId> result_expression;
  bool ok() const { return faults.empty(); }
};

/// The expression that an algorithm says it computes for the elements of a block; of scan and exscan, for a rank.
using DeclaredOrder = std::function<ExpressionId(int block, ExpressionPool& pool)>;

/// Proves for `plans` (one per rank, in order), whatever the number of segments:
///  - structure: both ends of every stream agree, every message is produced once and consumed once;
///  - data: each rank's operand enters each result once, all ranks hold the same expression, and it is the declared
///    order (and the canonical one where the request asks for it); of scan and exscan, the operands of the ranks before
///    it enter a rank's result, in rank order;
///  - buffers: nothing is read before it is ready nor overwritten before its last read, with input and result
///    separate or the same memory, with read_in_place and write_in_place streams by value or in place, in any mixture;
///  - no deadlock: the folded graph has no cycle of weight 0 (verify_precedence.hpp);
///  - streams without credits need none, within a call and from one call of this plan set to the next;
///  - credits: if a credit covers several messages, by `rules`, all of them have been taken;
///  - an alltoall in place needs no copy of its input where ranks run it as a linear program.
/// Expressions are made in `pool`. `order` may be empty.
Verdict verify(const PlanRequest& request, std::span<const Plan> plans, ExpressionPool& pool,
               const DeclaredOrder& order = {}, const CreditRules& rules = {});

/// Plans every rank with `algorithm` and verifies the set against the algorithm's declared order. A request that the
/// algorithm refuses is a fault.
Verdict verify(const Algorithm& algorithm, const PlanRequest& request, ExpressionPool& pool);
Verdict verify(const Algorithm& algorithm, const PlanRequest& request);

/// The figures of a plan set alone (height, busiest link, shared links), without any of the proofs but structure and a
/// cycle: for more ranks than can be proved.
Verdict measure(const PlanRequest& request, std::span<const Plan> plans);

/// The plans of all ranks, in order.
std::vector<Plan> plan_all(const Algorithm& algorithm, const PlanRequest& request);

}  // namespace torii
