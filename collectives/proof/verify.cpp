// SPDX-License-Identifier: Apache-2.0
// Runs the verifier's checks in order: each relies on those before it.
#include "collectives/proof/verify.hpp"

#include <algorithm>

#include "collectives/building/exchange_expansion.hpp"
#include "collectives/proof/verify_checks.hpp"
#include "collectives/proof/verify_orders.hpp"

namespace torii {
namespace {

using verification::Faults;
using verification::Precedence;
using verification::StepTable;

bool enough_slots(const StepTable& table, int slots, const CreditRules& rules) {
  Precedence precedence(table, slots, rules);
  if (!precedence.zero_cycle().empty()) return false;
  std::vector<std::string> sentences;
  Faults faults(sentences, 1);
  verification::check_implied_credits(table, slots, precedence, faults);
  return sentences.empty();
}

}  // namespace

Verdict verify(const PlanRequest& request, std::span<const Plan> plans, ExpressionPool& pool,
               const DeclaredOrder& order, const CreditRules& rules) {
  Verdict verdict;
  Faults faults(verdict.faults);
  if (have_exchanges(plans, faults)) {
    if (!faults.any()) check_orders(request, plans, faults);
    if (faults.any()) return verdict;
    // A pair's blocks are read in place, stored in place or go by value; each stream proves the last with either.
    verdict = verify(request, expand_exchanges(plans, Delivery::read_in_place), pool, order, rules);
    if (verdict.ok()) verdict = verify(request, expand_exchanges(plans, Delivery::write_in_place), pool, order, rules);
    return verdict;
  }
  const StepTable table = verification::tabulate(request, plans, faults);
  if (faults.any()) return verdict;
  const int slots = plans.front().slots;
  Precedence precedence(table, slots, rules);
  if (!precedence.zero_cycle().empty()) {
    faults.add(precedence.zero_cycle());
    return verdict;
  }
  if (request.collective == Collective::barrier) {
    verification::check_barrier(table, precedence, faults);
  } else {
    verification::check_data(request, table, precedence, pool, order, faults, verdict);
  }
  verification::check_buffers(table, precedence, faults);
  verification::check_implied_credits(table, slots, precedence, faults);
  verification::check_credits(table, slots, rules, precedence, faults);
  verification::check_linear_in_place(request, table, faults);
  if (!verdict.ok()) return verdict;
  verification::measure_links(request.topology, table, precedence, verdict);
  verdict.slots_least = 1;
  while (verdict.slots_least < slots && !enough_slots(table, verdict.slots_least, rules)) ++verdict.slots_least;
  return verdict;
}

Verdict measure(const PlanRequest& request, std::span<const Plan> plans) {
  Verdict verdict;
  Faults faults(verdict.faults);
  const StepTable table = verification::tabulate(request, plans, faults);
  if (faults.any()) return verdict;
  const Precedence precedence(table, plans.front().slots);
  if (!precedence.zero_cycle().empty()) {
    faults.add(precedence.zero_cycle());
    return verdict;
  }
  verification::measure_links(request.topology, table, precedence, verdict);
  return verdict;
}

std::vector<Plan> plan_all(const Algorithm& algorithm, const PlanRequest& request) {
  std::vector<Plan> plans;
  plans.reserve(static_cast<std::size_t>(request.topology.ranks()));
  for (int rank = 0; rank < request.topology.ranks(); ++rank) plans.push_back(algorithm.plan(request, rank));
  return plans;
}

Verdict verify(const Algorithm& algorithm, const PlanRequest& request, ExpressionPool& pool) {
  if (const std::string reason = algorithm.why_not(request); !reason.empty()) {
    Verdict verdict;
    verdict.faults.push_back(std::string(algorithm.name) + " refuses this request: " + reason);
    return verdict;
  }
  const std::vector<Plan> plans = plan_all(algorithm, request);
  DeclaredOrder order;
  if (algorithm.order != nullptr && combines(request.collective)) {
    order = [&](int block, ExpressionPool& into) { return algorithm.order(request, block, into); };
  }
  return verify(request, plans, pool, order);
}

Verdict verify(const Algorithm& algorithm, const PlanRequest& request) {
  ExpressionPool pool;
  return verify(algorithm, request, pool);
}

}  // namespace torii
