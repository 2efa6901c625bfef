// SPDX-License-Identifier: Apache-2.0
// direct: every block goes straight from the rank that has it to the rank that wants it. Alltoall, scatter and gather
// over any peers.
//
//   alltoall, 4 ranks                     scatter from 1          gather to 1
//
//        transfer: 0       1         2
//   0:       > 1 < 3   > 2 < 2   > 3 < 1    < 1                     > 1
//   1:       > 2 < 0   > 3 < 3   > 0 < 2    > 2   > 3   > 0         < 0   < 3   < 2
//   2:       > 3 < 1   > 0 < 0   > 1 < 3    < 1                     > 1
//   3:       > 0 < 2   > 1 < 1   > 2 < 0    < 1                     > 1
//
// Transfer e of rank u goes to u + e + 1, so no two ranks send to one at the same time while all keep in step. Short
// blocks travel in one message each, as a linear program; longer ones as a pairwise exchange, some transfers in flight.
//
// Source: the linear and pairwise exchanges of R. Thakur, R. Rabenseifner, W. Gropp, Optimization of Collective
// Communication Operations in MPICH, IJHPCA 19(1), 2005, section 4.3 (rotation instead of exclusive or: any number of
// ranks).
// Cost for blocks of n bytes on P ranks: P - 1 messages of n bytes out of and into each rank (scatter and gather: the
// root). Scatter and gather over a network are linear at the root, which suits long blocks.
#include <map>
#include <memory>
#include <mutex>

#include "collectives/building/exchange_plan.hpp"
#include "collectives/building/plan_builder.hpp"

namespace torii {
namespace {

/// Beyond, a list of all messages is long and their slots are many; a pairwise exchange then serves short blocks too.
constexpr int kOneShotRanksMax = 256;

class Rotation final : public TransferOrder {
 public:
  explicit Rotation(int ranks) : ranks_(ranks) {}
  std::string_view name() const noexcept override { return "rank + 1, rank + 2, ..."; }
  int transfers() const noexcept override { return ranks_ - 1; }
  int receiver(int rank, int transfer) const noexcept override { return (rank + transfer + 1) % ranks_; }
  int sender(int rank, int transfer) const noexcept override { return (rank - transfer - 1 + ranks_) % ranks_; }

 private:
  int ranks_;
};

/// One message per block: all that this rank sends, then all that it takes.
class OneShotPlan {
 public:
  OneShotPlan(const PlanRequest& request, int rank)
      : request_(request),
        rank_(rank),
        ranks_(request.topology.ranks()),
        builder_(request, rank, Dealing::block, ranks_),
        flows_(builder_.lane().flows) {}

  Plan make() {
    const PairwiseExchange ends = exchange_ends(request_);
    for (int k = 1; k < ranks_; ++k) {
      const int receiver = (rank_ + k) % ranks_;
      if (!ends.sends(rank_) || !ends.takes(receiver)) continue;
      stream_.peer = receiver;
      const StreamEnd end = builder_.out(stream_);
      const int block = ends.to >= 0 ? rank_ : receiver;
      flows_.push_back({.walk = blocks_from(block, 1, ranks_), .sources = {{}}, .targets = {end}, .label = "send"});
    }
    if (ends.sends(rank_) && ends.takes(rank_)) {
      flows_.push_back({.walk = blocks_from(rank_, 1, ranks_), .sources = {{}}, .keep = true, .label = "own block"});
    }
    for (int k = 1; k < ranks_; ++k) {
      const int sender = (rank_ - k + ranks_) % ranks_;
      if (!ends.takes(rank_) || !ends.sends(sender)) continue;
      stream_.peer = sender;
      const StreamEnd end = builder_.in(stream_);
      const int block = ends.from >= 0 ? rank_ : sender;
      flows_.push_back({.walk = blocks_from(block, 1, ranks_), .sources = {end}, .keep = true, .label = "take"});
    }
    Plan plan = builder_.take();
    set_exchange_maxima(plan, ends);
    return plan;
  }

 private:
  const PlanRequest& request_;
  const int rank_;
  const int ranks_;
  PlanBuilder builder_;
  std::vector<Flow>& flows_;
  Stream stream_;
};

std::string why_not(const PlanRequest& request) {
  return why_not_any("direct", {Collective::alltoall, Collective::scatter, Collective::gather}, request);
}

Plan plan(const PlanRequest& request, int rank) { return direct_plan(request, rank); }

}  // namespace

PairwiseExchange exchange_ends(const PlanRequest& request) {
  PairwiseExchange exchange;
  exchange.from = request.collective == Collective::scatter ? request.root : -1;
  exchange.to = request.collective == Collective::gather ? request.root : -1;
  // The root of a scatter would be the only one to store; its readers share the work.
  exchange.prefers_reads = request.collective == Collective::scatter;
  return exchange;
}

void set_exchange_maxima(Plan& plan, const PairwiseExchange& exchange) {
  plan.in_streams_max = plan.ranks == 1 ? 0 : exchange.from >= 0 ? 1 : plan.ranks - 1;
  plan.out_streams_max = plan.ranks == 1 ? 0 : exchange.to >= 0 ? 1 : plan.ranks - 1;
}

Plan exchange_plan(const PlanRequest& request, int rank, std::shared_ptr<const TransferOrder> order) {
  Plan plan = PlanBuilder(request, rank, Dealing::block, request.topology.ranks()).take();
  plan.exchange = exchange_ends(request);
  plan.exchange.order = std::move(order);
  plan.exchange.in_flight = request.tuning.window;
  set_exchange_maxima(plan, plan.exchange);
  return plan;
}

Plan direct_plan(const PlanRequest& request, int rank) {
  const int ranks = request.topology.ranks();
  if (request.tuning.one_shot && ranks <= kOneShotRanksMax) return OneShotPlan(request, rank).make();
  return exchange_plan(request, rank, rotation(ranks));
}

std::shared_ptr<const TransferOrder> rotation(int ranks) {
  static std::mutex mutex;
  static std::map<int, std::shared_ptr<const TransferOrder>> orders;
  const std::lock_guard lock(mutex);
  std::shared_ptr<const TransferOrder>& order = orders[ranks];
  if (order == nullptr) order = std::make_shared<Rotation>(ranks);
  return order;
}

extern const Algorithm kDirect = {
    "direct", "linear and pairwise exchange; Thakur, Rabenseifner, Gropp 2005, section 4.3", why_not, plan, nullptr};

}  // namespace torii
