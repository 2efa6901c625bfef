// SPDX-License-Identifier: Apache-2.0
// a2a, a2and, a2at_printed, a2at: alltoall as a pairwise exchange in one of the orders of exchange_lists.hpp.
//
// Every rank sends to the same offsets in the same order, so what one rank loads a direction of the torus with all do.
// The orders differ in how evenly the transfers that are in flight at one time load all directions. a2a has direct's
// order. It is a row of its own because papers compare with it: always a pairwise exchange, and with ties if there are
// any.
//
// Source: A2AT (orders for meshes and tori) and the orders it is compared with; docs/algorithms/a2at.md.
// Cost for blocks of n bytes on P ranks: P - 1 messages of n bytes out of and into each rank. The time on a torus is
// that of its busiest link, n P / 8 times the longest extent at best.
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "collectives/building/exchange_plan.hpp"
#include "collectives/building/plan_builder.hpp"
#include "collectives/orders/exchange_lists.hpp"

namespace torii {
namespace {

/// A list as the order of a plan's transfers.
class ListOrder final : public TransferOrder {
 public:
  ListOrder(ExchangeOrder order, const Topology& topology, int controllers)
      : order_(order), topology_(topology), list_(exchange_list(order, topology, controllers)) {}
  std::string_view name() const noexcept override { return torii::name(order_); }
  int transfers() const noexcept override { return static_cast<int>(list_.transfers); }
  int receiver(int rank, int transfer) const noexcept override {
    return torii::receiver(topology_, list_, rank, static_cast<std::size_t>(transfer));
  }
  int sender(int rank, int transfer) const noexcept override {
    return torii::sender(topology_, list_, rank, static_cast<std::size_t>(transfer));
  }
  Ties ties(int rank, int transfer) const noexcept override {
    return exchange_ties(topology_, list_, rank, static_cast<std::size_t>(transfer));
  }

 private:
  ExchangeOrder order_;
  Topology topology_;
  const ExchangeList& list_;
};

/// One object for each list, since a plan is made for every rank of a process.
std::shared_ptr<const TransferOrder> list_order(ExchangeOrder order, const PlanRequest& request) {
  static std::mutex mutex;
  static std::map<std::pair<int, std::string>, std::shared_ptr<const TransferOrder>> orders;
  const std::lock_guard lock(mutex);
  const std::string shape = request.topology.text() + ' ' + request.topology.map_text() + ' ' +
                            std::to_string(request.topology.ranks()) + ' ' + std::to_string(request.tuning.window);
  std::shared_ptr<const TransferOrder>& found = orders[{static_cast<int>(order), shape}];
  if (found == nullptr) found = std::make_shared<ListOrder>(order, request.topology, request.tuning.window);
  return found;
}

template <ExchangeOrder kOrder>
std::string why_not(const PlanRequest& request) {
  std::string reason = why_not_any(name(kOrder), {Collective::alltoall}, request);
  return reason.empty() ? why_no_exchange_list(kOrder, request.topology) : reason;
}

template <ExchangeOrder kOrder>
Plan plan(const PlanRequest& request, int rank) {
  return exchange_plan(request, rank, list_order(kOrder, request));
}

}  // namespace

extern const Algorithm kA2a = {"a2a", "A2AT paper, the order it is compared with", why_not<ExchangeOrder::a2a>,
                               plan<ExchangeOrder::a2a>, nullptr};
extern const Algorithm kA2and = {"a2and", "A2AT paper, the order by coordinates", why_not<ExchangeOrder::a2and>,
                                 plan<ExchangeOrder::a2and>, nullptr};
extern const Algorithm kA2atPrinted = {"a2at_printed", "A2AT paper, as printed with two corrections",
                                       why_not<ExchangeOrder::a2at_printed>, plan<ExchangeOrder::a2at_printed>,
                                       nullptr};
extern const Algorithm kA2at = {"a2at", "A2AT paper, with balanced orders for all tori", why_not<ExchangeOrder::a2at>,
                                plan<ExchangeOrder::a2at>, nullptr};

}  // namespace torii
