// SPDX-License-Identifier: Apache-2.0
// Plans with pairwise exchanges: what they look like, and each way to break one is rejected.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "collectives/drawing/draw.hpp"
#include "collectives/proof/verify.hpp"
#include "collectives/selection/selection.hpp"

namespace torii::tests {
namespace {

/// An order of lists: transfer e of rank u goes to receivers[u][e].
class Listed final : public TransferOrder {
 public:
  explicit Listed(int ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      for (int transfer = 0; transfer + 1 < ranks; ++transfer) {
        receivers[rank].push_back((rank + transfer + 1) % ranks);
        senders[rank].push_back((rank - transfer - 1 + ranks) % ranks);
      }
    }
  }
  std::string_view name() const noexcept override { return "listed"; }
  int transfers() const noexcept override { return length >= 0 ? length : static_cast<int>(receivers[0].size()); }
  int receiver(int rank, int transfer) const noexcept override { return receivers[rank][transfer]; }
  int sender(int rank, int transfer) const noexcept override { return senders[rank][transfer]; }

  std::vector<int> receivers[8];
  std::vector<int> senders[8];
  int length = -1;
};

PlanRequest request_of(Collective collective, int ranks, int root = 0) {
  return {collective, Topology::node(ranks), root, Determinism::run, false, {4096, 4, 2, false}};
}

using Break = std::function<void(std::vector<Plan>& plans, Listed& order)>;

/// The first fault of an alltoall of 5 ranks (or of the root collective from 2) after it was broken.
std::string fault_of(Collective collective, const Break& break_it) {
  const PlanRequest request = request_of(collective, 5, collective == Collective::alltoall ? 0 : 2);
  std::vector<Plan> plans = plan_all(*find_algorithm("direct"), request);
  const auto order = std::make_shared<Listed>(5);
  for (Plan& plan : plans) plan.exchange.order = order;
  break_it(plans, *order);
  ExpressionPool pool;
  const Verdict verdict = verify(request, plans, pool);
  return verdict.ok() ? "" : verdict.faults.front();
}

TEST(PairwiseExchanges, UnbrokenOnesAreRight) {
  for (const Collective collective : {Collective::alltoall, Collective::scatter, Collective::gather}) {
    EXPECT_EQ(fault_of(collective, [](auto&, auto&) {}), "") << name(collective);
  }
}

TEST(PairwiseExchanges, OrdersThatBothEndsSeeDifferentlyAreRejected) {
  const std::string text = fault_of(
      Collective::alltoall, [](auto&, Listed& order) { std::swap(order.receivers[1][0], order.receivers[1][2]); });
  EXPECT_EQ(text, "rank 1: transfer 0 goes to rank 4, which takes from rank 3 there");
}

TEST(PairwiseExchanges, ReceiversThatComeTwiceOrNotAtAllAreRejected) {
  EXPECT_EQ(fault_of(Collective::alltoall, [](auto&, Listed& order) { order.receivers[0][1] = 1; }),
            "rank 0: transfer 1 goes to rank 1, to which an earlier one goes");
  EXPECT_EQ(fault_of(Collective::alltoall, [](auto&, Listed& order) { order.receivers[0][0] = 0; }),
            "rank 0: transfer 0 goes to rank 0");
  EXPECT_EQ(fault_of(Collective::alltoall, [](auto&, Listed& order) { order.receivers[3][0] = 5; }),
            "rank 3: transfer 0 goes to rank 5");
  EXPECT_EQ(fault_of(Collective::alltoall, [](auto&, Listed& order) { order.length = 3; }),
            "rank 0: the order has 3 transfers for 5 ranks");
}

TEST(PairwiseExchanges, WrongEndsMaximaAndBoundsAreRejected) {
  EXPECT_EQ(fault_of(Collective::scatter, [](std::vector<Plan>& plans, auto&) { plans[1].exchange.from = 3; }),
            "rank 1: the pairwise exchange goes from rank 3 to rank -1, but should from 2 to -1 (-1: all)");
  EXPECT_EQ(fault_of(Collective::gather, [](std::vector<Plan>& plans, auto&) { plans[4].exchange.to = -1; }),
            "rank 4: the pairwise exchange goes from rank -1 to rank -1, but should from -1 to 2 (-1: all)");
  EXPECT_EQ(fault_of(Collective::alltoall, [](std::vector<Plan>& plans, auto&) { plans[2].exchange.in_flight = 0; }),
            "rank 2: so many transfers may be in flight: 0");
  EXPECT_EQ(fault_of(Collective::alltoall, [](std::vector<Plan>& plans, auto&) { plans[3].exchange = {}; }),
            "the plans of 4 of 5 ranks have a pairwise exchange");
  EXPECT_EQ(fault_of(Collective::alltoall, [](std::vector<Plan>& plans, auto&) { plans[2].rank = 1; }),
            "rank 2: the plan says it is of rank 1");
  EXPECT_EQ(fault_of(Collective::alltoall, [](std::vector<Plan>& plans, auto&) { plans.pop_back(); }),
            "the topology has 5 ranks but there are 4 plans");
  EXPECT_EQ(fault_of(Collective::alltoall, [](std::vector<Plan>& plans, auto&) { plans[0].lanes.emplace_back(); }),
            "rank 0: a plan with a pairwise exchange has no lanes and no streams of its own");
  const std::string maxima =
      fault_of(Collective::alltoall, [](std::vector<Plan>& plans, auto&) { plans[0].in_streams_max = 3; });
  EXPECT_NE(maxima.find("in_streams_max is 3 but the most of any rank is 4"), std::string::npos) << maxima;
  const std::string blocks = fault_of(Collective::alltoall, [](std::vector<Plan>& plans, auto&) {
    for (Plan& plan : plans) plan.blocks = 10;
  });
  EXPECT_NE(blocks.find("a plan of alltoall has one block per rank"), std::string::npos) << blocks;
}

TEST(PairwiseExchanges, OfACombiningCollectiveAreRejected) {
  std::vector<Plan> plans = plan_all(*find_algorithm("direct"), request_of(Collective::alltoall, 3));
  ExpressionPool pool;
  const Verdict verdict = verify(request_of(Collective::allreduce, 3), plans, pool);
  ASSERT_FALSE(verdict.ok());
  EXPECT_EQ(verdict.faults.front(),
            "rank 0: a pairwise exchange moves blocks from rank to rank, which allreduce does not ask for");
}

/// One-shot plans are lists of messages, so single ones can be broken.
TEST(PairwiseExchanges, WrongBlocksOfOneShotPlansAreRejected) {
  for (const Collective collective : {Collective::alltoall, Collective::scatter, Collective::gather}) {
    PlanRequest request = request_of(collective, 4);
    request.tuning = {4096, 4, 1, true};
    const std::vector<Plan> right = plan_all(*find_algorithm("direct"), request);
    ExpressionPool pool;
    ASSERT_TRUE(verify(request, right, pool).ok());
    int broken = 0;
    for (std::size_t rank = 0; rank < right.size(); ++rank) {
      for (std::size_t flow = 0; flow < right[rank].lanes[0].flows.size(); ++flow, ++broken) {
        std::vector<Plan> plans = right;
        Walk& walk = plans[rank].lanes[0].flows[flow].walk;
        walk.first = (walk.first + 1) % 4;
        EXPECT_FALSE(verify(request, plans, pool).ok()) << name(collective) << " rank " << rank << " flow " << flow;
      }
    }
    EXPECT_GE(broken, 7);
  }
}

TEST(PairwiseExchanges, PlansStayShortAndShareTheirOrder) {
  const PlanRequest request = request_of(Collective::alltoall, 1000);
  const Algorithm& direct = *find_algorithm("direct");
  const Plan first = direct.plan(request, 0);
  const Plan last = direct.plan(request, 999);
  EXPECT_EQ(first.exchange.order, last.exchange.order);
  EXPECT_TRUE(first.lanes.empty() && first.in.empty() && first.out.empty());
  EXPECT_LE(sizeof(Plan), 400U);
}

TEST(PairwiseExchanges, AreShownAsText) {
  const PlanRequest request = request_of(Collective::alltoall, 4);
  EXPECT_NE(draw_text(request, find_algorithm("direct")->plan(request, 1))
                .find("pairwise exchange: all to all, rank + 1, rank + 2, ..., 2 in flight; to 2 3 0; from 0 3 2"),
            std::string::npos)
      << draw_text(request, find_algorithm("direct")->plan(request, 1));
  const PlanRequest gather = request_of(Collective::gather, 4, 3);
  EXPECT_NE(draw_text(gather, find_algorithm("direct")->plan(gather, 0)).find("pairwise exchange: all to rank 3, "),
            std::string::npos);
}

TEST(PairwiseExchanges, SegmentsShrinkSoThatSlotsStayBounded) {
  const TuneTable table = TuneTable::parse(
      R"({"version": 1, "rows": [{"collective": "alltoall", "ranks": [1, 4096], "bytes_max": null,
          "algorithm": "direct", "segment": 32768, "slots": 8, "window": 4}]})",
      "test");
  const auto segment_of = [&](int ranks) {
    return select(table, {}, request_of(Collective::alltoall, ranks), std::size_t{1} << 40)
        .request.tuning.segment_bytes;
  };
  EXPECT_EQ(segment_of(4), 32768U);
  EXPECT_EQ(segment_of(64), 16384U);
  EXPECT_EQ(segment_of(1000), 1024U);
  EXPECT_EQ(segment_of(4096), 512U);
}

}  // namespace
}  // namespace torii::tests
