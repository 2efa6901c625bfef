// SPDX-License-Identifier: Apache-2.0
// Symbolic execution of one segment: the expression of every result, and whether it is the declared one.
#include <algorithm>
#include <numeric>

#include "collectives/proof/verify_checks.hpp"

namespace torii::verification {
namespace {

/// The value of a step: rounded to the vector's type (kept, or sent narrow) and as it travels on a wide stream.
struct StepValue {
  ExpressionId rounded = kNoExpression;
  ExpressionId wide = kNoExpression;
};

ExpressionId folded(Fold fold, std::span<const ExpressionId> operands, bool rounded, ExpressionPool& pool) {
  return fold == Fold::left ? pool.fold(operands, rounded) : pool.canonical(operands, rounded);
}

std::vector<StepValue> step_values(const PlanRequest& request, const StepTable& table, const Precedence& precedence,
                                   ExpressionPool& pool, Faults& faults) {
  std::vector<StepValue> values(table.steps.size());
  std::vector<ExpressionId> operands;
  for (const StepId step : precedence.order()) {
    operands.clear();
    std::size_t tokens = 0;
    bool sends_wide = false;
    for (const StepPort& source : table.sources(step)) {
      if (source.stream == kOwnStream) {
        operands.push_back(operand_of(request, table.rank_of(step), source.message, pool));
        continue;
      }
      const JoinedStream& joined = table.streams[source.stream];
      const StepValue& value = values[table.producer(joined, source.message)];
      const ExpressionId operand = joined.stream.wide ? value.wide : value.rounded;
      if (operand == kNoExpression) {
        ++tokens;
      } else {
        operands.push_back(operand);
      }
    }
    for (const StepPort& target : table.targets(step)) sends_wide |= table.streams[target.stream].stream.wide;
    const Flow& flow = table.flow_of(step);
    if (tokens != 0 && (!operands.empty() || flow.keep)) faults.add(table.text(step) + ": takes a token for data");
    if (operands.empty()) continue;
    values[step].rounded = folded(flow.fold, operands, true, pool);
    if (sends_wide) values[step].wide = folded(flow.fold, operands, false, pool);
  }
  return values;
}

/// `noun`: whose operands are counted, "rank" or "leaf".
void check_each_once(ExpressionId expression, int operands, const char* noun, int block, const ExpressionPool& pool,
                     Faults& faults) {
  const std::vector<int> counts = pool.occurrences(expression, operands);
  for (int operand = 0; operand < operands; ++operand) {
    if (counts[operand] == 1) continue;
    faults.add("block " + std::to_string(block) + ": the operand of " + noun + " " + std::to_string(operand) +
               " is combined " + std::to_string(counts[operand]) + " times in " + pool.text(expression));
    return;
  }
}

/// Equal but for where intermediate values are rounded, which types that are never widened cannot tell.
bool equal_but_for_rounding(ExpressionId a, ExpressionId b, const ExpressionPool& pool) {
  std::vector<std::pair<ExpressionId, ExpressionId>> open = {{a, b}};
  while (!open.empty()) {
    const auto [x, y] = open.back();
    open.pop_back();
    if (x == y) continue;
    const ExpressionNode& left = pool.node(x);
    const ExpressionNode& right = pool.node(y);
    if (left.leaf_rank >= 0 || right.leaf_rank >= 0) {
      if (left.leaf_rank != right.leaf_rank) return false;
      continue;
    }
    open.emplace_back(left.left, right.left);
    open.emplace_back(left.right, right.right);
  }
  return true;
}

/// The ranks whose operands are in `expression`, from left to right.
std::vector<int> leaves_of(ExpressionId expression, const ExpressionPool& pool) {
  std::vector<int> leaves;
  std::vector<ExpressionId> open = {expression};
  while (!open.empty()) {
    const ExpressionNode& node = pool.node(open.back());
    open.pop_back();
    if (node.leaf_rank >= 0) {
      leaves.push_back(node.leaf_rank);
      continue;
    }
    if (node.right != kNoExpression) open.push_back(node.right);
    if (node.left != kNoExpression) open.push_back(node.left);
  }
  return leaves;
}

/// For scan and exscan: the number of operands in a rank's result.
int prefix_length(const PlanRequest& request, int rank) {
  return request.collective == Collective::scan ? rank + 1 : rank;
}

void check_in_rank_order(const PlanRequest& request, ExpressionId expression, int rank, const ExpressionPool& pool,
                         Faults& faults) {
  std::vector<int> wanted(static_cast<std::size_t>(prefix_length(request, rank)));
  std::iota(wanted.begin(), wanted.end(), 0);
  if (leaves_of(expression, pool) == wanted) return;
  faults.add("the result of rank " + std::to_string(rank) + " should combine ranks 0 to " +
             std::to_string(wanted.size() - 1) + " in this order, but is " + pool.text(expression));
}

/// `operands`: how many ranks' operands, or leaves, are combined.
void check_canonical(const PlanRequest& request, int operands, ExpressionId expression, int block, ExpressionPool& pool,
                     Faults& faults) {
  std::vector<ExpressionId> leaves(static_cast<std::size_t>(operands));
  for (int rank = 0; rank < operands; ++rank) leaves[static_cast<std::size_t>(rank)] = pool.leaf(rank);
  const ExpressionId wanted = pool.canonical(leaves, true);
  if (request.wide_wire ? expression == wanted : equal_but_for_rounding(expression, wanted, pool)) return;
  faults.add("block " + std::to_string(block) + ": the canonical order is " + pool.text(wanted) +
             ", but the plans compute " + pool.text(expression));
}

/// `block` is a rank in scan and exscan, as in Verdict::result_expression.
void check_expression(const PlanRequest& request, const Plan& plan, ExpressionId expression, int block,
                      ExpressionPool& pool, const DeclaredOrder& order, Faults& faults) {
  if (!combines(request.collective)) {
    const bool is_from_root = request.collective == Collective::broadcast || request.collective == Collective::scatter;
    int source = is_from_root ? request.root : owner_of(request, plan, block);
    if (request.collective == Collective::alltoall) source /= request.topology.ranks();
    if (expression == pool.leaf(source)) return;
    faults.add("block " + std::to_string(block) + ": the result should be the operand of rank " +
               std::to_string(source) + " but is " + pool.text(expression));
    return;
  }
  int operands = request.leaves != nullptr ? static_cast<int>(request.leaves->leaves()) : request.topology.ranks();
  if (is_prefix(request.collective)) {
    operands = prefix_length(request, block);
    check_in_rank_order(request, expression, block, pool, faults);
  } else {
    check_each_once(expression, operands, request.leaves != nullptr ? "leaf" : "rank", block, pool, faults);
  }
  if (request.determinism == Determinism::canonical || request.leaves != nullptr) {
    check_canonical(request, operands, expression, block, pool, faults);
  }
  if (!order) return;
  const ExpressionId declared = order(block, pool);
  if (declared == expression) return;
  // Sums over leaves never travel as small floats, so there is one expression for all intervals.
  if (request.leaves != nullptr && equal_but_for_rounding(declared, expression, pool)) return;
  const std::string declared_text = pool.text(declared);
  std::string computed = pool.text(expression);
  if (computed == declared_text) computed = "it with other roundings: only values of wide streams are not rounded";
  faults.add("block " + std::to_string(block) + ": the declared order is " + declared_text +
             ", but the plans compute " + computed);
}

}  // namespace

void check_data(const PlanRequest& request, const StepTable& table, const Precedence& precedence, ExpressionPool& pool,
                const DeclaredOrder& order, Faults& faults, Verdict& verdict) {
  const std::vector<StepValue> values = step_values(request, table, precedence, pool, faults);
  const std::vector<ResultWrite> writes = result_writes(table, precedence);
  const int ranks = request.topology.ranks();
  const int blocks = table.blocks;
  std::vector<ExpressionId>& results = verdict.result_expression;
  const int expressions = is_prefix(request.collective) ? ranks : blocks;
  results.assign(expressions, kNoExpression);
  if (request.collective == Collective::broadcast) results.assign(blocks, pool.leaf(request.root));
  auto write = writes.begin();
  for (int rank = 0; rank < ranks; ++rank) {
    for (int block = 0; block < blocks; ++block) {
      ExpressionId result = kNoExpression;  // the last write of the block counts
      for (; write != writes.end() && write->rank == rank && write->block == block; ++write)
        result = values[write->last].rounded;
      if (!has_result(request, rank, owner_of(request, table.plans[0], block)) || faults.full()) continue;
      const std::string where = "the result block " + std::to_string(block) + " of rank " + std::to_string(rank);
      ++verdict.proofs.results;
      ExpressionId& all = results[result_number(request, rank, block)];
      if (result == kNoExpression) {
        faults.add(where + " is never written");
      } else if (all == kNoExpression) {
        all = result;
      } else if (all != result) {
        faults.add(where + " is " + pool.text(result) + ", others hold " + pool.text(all));
      }
    }
  }
  for (int block = 0; block < expressions && !faults.full(); ++block) {
    if (results[block] == kNoExpression) continue;
    check_expression(request, table.plans[0], results[block], block, pool, order, faults);
  }
}

void check_barrier(const StepTable& table, const Precedence& precedence, Faults& faults) {
  const std::size_t ranks = table.plans.size();
  const std::size_t words = (ranks + 63) / 64;
  std::vector<std::uint64_t> entered(table.steps.size() * words, 0);  // per step, the ranks known to have entered
  std::vector<std::uint64_t> known(ranks * words, 0);
  for (const StepId step : precedence.order()) {
    std::uint64_t* mine = &entered[step * words];
    const auto learn = [&](StepId other) {
      for (std::size_t w = 0; w < words; ++w) mine[w] |= entered[other * words + w];
    };
    const std::size_t rank = static_cast<std::size_t>(table.rank_of(step));
    mine[rank / 64] |= std::uint64_t{1} << (rank % 64);
    if (step > table.lane_of(step).first) learn(step - 1);
    for (const StepPort& source : table.sources(step)) {
      if (source.stream == kOwnStream) continue;
      const JoinedStream& joined = table.streams[source.stream];
      if (joined.stream.delivery != Delivery::read_in_place) learn(table.producer(joined, source.message));
    }
    for (std::size_t w = 0; w < words; ++w) known[rank * words + w] |= mine[w];
  }
  for (std::size_t rank = 0; rank < ranks && !faults.full(); ++rank) {
    for (std::size_t other = 0; other < ranks; ++other) {
      if (other == rank || (known[rank * words + other / 64] >> (other % 64) & 1) != 0) continue;
      faults.add("rank " + std::to_string(rank) + " may leave the barrier before rank " + std::to_string(other) +
                 " has entered");
      break;
    }
  }
}

}  // namespace torii::verification
