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

/// Plans of flows. `exchange`: the pairwise exchange that they were written out from, or nullptr.
Verdict verify_flows(const PlanRequest& request, std::span<const Plan> plans, ExpressionPool& pool,
                     const DeclaredOrder& order, const ExecutorRules& rules, const PairwiseExchange* exchange) {
  Verdict verdict;
  Proofs& proofs = verdict.proofs;
  Faults faults(verdict.faults);
  const StepTable table = verification::tabulate(request, plans, faults, rules);
  if (faults.any()) return verdict;
  const int slots = plans.front().slots;
  Precedence precedence(table, slots);
  if (!precedence.zero_cycle().empty()) {
    faults.add(precedence.zero_cycle());
    return verdict;
  }
  proofs.steps = table.step_count();
  for (const verification::JoinedStream& joined : table.streams) {
    if (joined.stream.bundle > 1) ++proofs.bundled;
    if (joined.stream.delivery == Delivery::read_in_place) ++proofs.read_in_place;
    if (joined.stream.delivery == Delivery::write_in_place) ++proofs.write_in_place;
  }
  if (request.collective == Collective::barrier) {
    verification::check_barrier(table, precedence, faults);
  } else {
    verification::check_data(request, table, precedence, pool, order, faults, verdict);
  }
  verification::check_buffers(table, precedence, faults, proofs);
  verification::check_readers(table, rules, precedence, faults);
  verification::check_rings(table, rules, faults, proofs);
  verification::check_sent_in_place(table, rules, exchange, precedence, faults, proofs);
  if (exchange == nullptr) {
    verification::check_shared_payloads(table, rules, faults, proofs);
    verification::check_private_reads(request.collective, table, rules, faults, proofs);
    verification::check_offers(table, rules, precedence, faults, proofs);
    verification::check_lists(request, table, rules, faults, proofs);
  }
  if (!verdict.ok()) return verdict;
  verification::check_counts(table, slots, rules, faults, verdict);
  if (!verdict.ok()) return verdict;
  verification::measure_links(request.topology, table, precedence, verdict);
  return verdict;
}

/// A pair's blocks are read in place, stored in place or go by value; each stream proves the last with either.
Verdict verify_exchanges(const PlanRequest& request, std::span<const Plan> plans, ExpressionPool& pool,
                         const ExecutorRules& rules) {
  Verdict verdict;
  Faults faults(verdict.faults);
  check_orders(request, plans, faults);
  if (!faults.any()) verification::check_transfers(rules, faults);
  if (faults.any()) return verdict;
  const PairwiseExchange* const exchange = &plans.front().exchange;
  verdict = verify_flows(request, expand_exchanges(plans, Delivery::read_in_place), pool, {}, rules, exchange);
  if (!verdict.ok()) return verdict;
  const Proofs read = verdict.proofs;
  verdict = verify_flows(request, expand_exchanges(plans, Delivery::write_in_place), pool, {}, rules, exchange);
  verdict.proofs.read_in_place = read.read_in_place;
  verdict.proofs.read_privately = read.read_in_place;
  verdict.proofs.transfers = read.read_in_place;
  // Both ranks of a pair make offers; an alltoall has a transfer for each.
  const bool both_ways = exchange->from < 0 && exchange->to < 0;
  verdict.proofs.offers = both_ways ? read.read_in_place : 2 * read.read_in_place;
  return verdict;
}

}  // namespace

Verdict verify(const PlanRequest& request, std::span<const Plan> plans, ExpressionPool& pool,
               const DeclaredOrder& order, const ExecutorRules& rules) {
  Verdict verdict;
  Faults faults(verdict.faults);
  const bool exchanges = have_exchanges(plans, faults);
  if (faults.any()) return verdict;
  if (exchanges) return verify_exchanges(request, plans, pool, rules);
  return verify_flows(request, plans, pool, order, rules, nullptr);
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
  if (combines(request.collective)) {
    if (algorithm.order == nullptr) {
      Verdict verdict;
      verdict.faults.push_back(std::string(algorithm.name) + " combines operands, so its row must declare their order");
      return verdict;
    }
    order = [&](int block, ExpressionPool& into) { return algorithm.order(request, block, into); };
  }
  Verdict verdict = verify(request, plans, pool, order);
  if (verdict.ok() && slots_least(algorithm, request) < verdict.slots_least) {
    verdict.faults.push_back(std::string(algorithm.name) + " declares least slots of " +
                             std::to_string(slots_least(algorithm, request)) + ", but " +
                             std::to_string(verdict.slots_least) + " are needed");
  }
  if (const int most = pair_streams_most(algorithm, request, plans[0]); verdict.ok() && most < verdict.proofs.rings) {
    verdict.faults.push_back(std::string(algorithm.name) + " declares at most " + std::to_string(most) +
                             " streams from a rank to another one, but has " + std::to_string(verdict.proofs.rings));
  }
  return verdict;
}

Verdict verify(const Algorithm& algorithm, const PlanRequest& request) {
  ExpressionPool pool;
  return verify(algorithm, request, pool);
}

}  // namespace torii
