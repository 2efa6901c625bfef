// SPDX-License-Identifier: Apache-2.0
// Checks the orders of pairwise exchanges.
#include "collectives/proof/verify_orders.hpp"

#include <algorithm>
#include <string>

namespace torii {
namespace {

using verification::Faults;

void check_ends(const PlanRequest& request, const Plan& plan, const std::string& who, Faults& faults) {
  const int from = request.collective == Collective::scatter ? request.root : -1;
  const int to = request.collective == Collective::gather ? request.root : -1;
  if (!is_personalised(request.collective)) {
    faults.add(who + "a pairwise exchange moves blocks from rank to rank, which " +
               std::string(name(request.collective)) + " does not ask for");
  }
  if (plan.exchange.from != from || plan.exchange.to != to) {
    faults.add(who + "the pairwise exchange goes from rank " + std::to_string(plan.exchange.from) + " to rank " +
               std::to_string(plan.exchange.to) + ", but should from " + std::to_string(from) + " to " +
               std::to_string(to) + " (-1: all)");
  }
  if (plan.exchange.in_flight < 1) {
    faults.add(who + "so many transfers may be in flight: " + std::to_string(plan.exchange.in_flight));
  }
  if (!plan.lanes.empty() || !plan.in.empty() || !plan.out.empty()) {
    faults.add(who + "a plan with a pairwise exchange has no lanes and no streams of its own");
  }
}

/// The transfers of one rank against those of all others.
void check_entries(const Plan& plan, std::span<const Plan> plans, const std::string& who, Faults& faults) {
  const TransferOrder& order = *plan.exchange.order;
  const auto ranks = static_cast<int>(plans.size());
  if (order.transfers() != ranks - 1) {
    faults.add(who + "the order has " + std::to_string(order.transfers()) + " transfers for " + std::to_string(ranks) +
               " ranks");
    return;
  }
  std::vector<bool> met(plans.size(), false);
  for (int transfer = 0; transfer < order.transfers() && !faults.full(); ++transfer) {
    const int receiver = order.receiver(plan.rank, transfer);
    const std::string at = who + "transfer " + std::to_string(transfer) + " ";
    if (receiver < 0 || receiver >= ranks || receiver == plan.rank) {
      faults.add(at + "goes to rank " + std::to_string(receiver));
      continue;
    }
    if (met[static_cast<std::size_t>(receiver)]) {
      faults.add(at + "goes to rank " + std::to_string(receiver) + ", to which an earlier one goes");
    }
    met[static_cast<std::size_t>(receiver)] = true;
    const int sender = plans[static_cast<std::size_t>(receiver)].exchange.order->sender(receiver, transfer);
    if (sender != plan.rank) {
      faults.add(at + "goes to rank " + std::to_string(receiver) + ", which takes from rank " + std::to_string(sender) +
                 " there");
    }
  }
}

}  // namespace

bool have_exchanges(std::span<const Plan> plans, Faults& faults) {
  const auto with = std::ranges::count_if(plans, [](const Plan& plan) { return plan.exchange.exists(); });
  if (with != 0 && with != static_cast<std::ptrdiff_t>(plans.size())) {
    faults.add("the plans of " + std::to_string(with) + " of " + std::to_string(plans.size()) +
               " ranks have a pairwise exchange");
  }
  return with != 0;
}

void check_orders(const PlanRequest& request, std::span<const Plan> plans, Faults& faults) {
  const int ranks = request.topology.ranks();
  if (static_cast<int>(plans.size()) != ranks) {
    faults.add("the topology has " + std::to_string(ranks) + " ranks but there are " + std::to_string(plans.size()) +
               " plans");
    return;
  }
  for (int rank = 0; rank < ranks && !faults.full(); ++rank) {
    const Plan& plan = plans[static_cast<std::size_t>(rank)];
    const std::string who = "rank " + std::to_string(rank) + ": ";
    if (plan.rank != rank) {
      faults.add(who + "the plan says it is of rank " + std::to_string(plan.rank));
      return;
    }
    check_ends(request, plan, who, faults);
    check_entries(plan, plans, who, faults);
  }
}

}  // namespace torii
