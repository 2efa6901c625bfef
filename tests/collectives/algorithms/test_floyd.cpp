// SPDX-License-Identifier: Apache-2.0
// floyd: its hops, what its plans cost, and each way to break a bundle is rejected.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "collectives/building/floyd_hops.hpp"
#include "collectives/building/floyd_model.hpp"
#include "collectives/drawing/draw.hpp"
#include "collectives/proof/verify.hpp"
#include "collectives/selection/selection.hpp"
#include "tests/collectives/proof/test_verify_plans.hpp"
#include "tests/support/test_run.hpp"
#include "tests/support/verify_run.hpp"

namespace torii::tests {
namespace {

const Algorithm& floyd() { return *find_algorithm("floyd"); }

PlanRequest request_of(int ranks, int radix, int slots = 4, int window = 1) {
  return {Collective::alltoall,
          Topology::node(ranks),
          0,
          Determinism::run,
          false,
          {.segment_bytes = 4096, .slots = slots, .window = window, .radix = radix}};
}

TEST(Floyd, EveryWayIsMadeDigitByDigit) {
  for (int ranks = 1; ranks <= 1000; ranks += ranks < 130 ? 1 : 87) {
    for (const int radix : {2, 3, 4, 7, 16, 2000}) {
      const FloydHops hops(ranks, radix);
      std::vector<int> gone(static_cast<std::size_t>(ranks), 0);
      for (const FloydHops::Hop& hop : hops.all()) {
        for (const int way : hop.ways) {
          int& so_far = gone[static_cast<std::size_t>(way)];
          ASSERT_EQ(so_far, hops.gone_before(way, hop)) << ranks << " ranks, radix " << radix << ", way " << way;
          so_far += hop.distance;
          ASSERT_EQ(so_far == way, hops.ends_with(way, hop));
        }
      }
      for (int way = 0; way < ranks; ++way)
        ASSERT_EQ(gone[static_cast<std::size_t>(way)], way) << ranks << " " << radix;
    }
  }
}

TEST(Floyd, RanksFindEachOtherAtEveryDistance) {
  for (const int ranks : {1, 2, 5, 8, 12, 64}) {
    for (const int radix : {2, 3, 4}) {
      const FloydHops hops(ranks, radix);
      for (int rank = 0; rank < ranks; ++rank) {
        for (int distance = 0; distance < ranks; ++distance) {
          ASSERT_EQ(hops.from(hops.to(rank, distance), distance), rank);
          ASSERT_EQ(hops.to(hops.from(rank, distance), distance), rank);
        }
      }
    }
  }
}

/// The paper's figures for powers of two, and those of Bruck and others for the rest.
TEST(Floyd, RoundsAndBlocksAreThoseOfTheHeader) {
  for (const int ranks : {2, 4, 8, 16, 64, 1024}) {
    const FloydHops hops(ranks, 2);
    EXPECT_EQ(hops.rounds(), std::countr_zero(static_cast<unsigned>(ranks)));
    for (const FloydHops::Hop& hop : hops.all()) EXPECT_EQ(static_cast<int>(hop.ways.size()), ranks / 2);
  }
  struct Row {
    int radix, hops;
    long long blocks;
  };
  for (const Row& row : {Row{2, 7, 316}, Row{4, 10, 251}, Row{8, 15, 207}, Row{100, 99, 99}, Row{500, 99, 99}}) {
    const FloydHops hops(100, row.radix);
    EXPECT_EQ(static_cast<int>(hops.all().size()), row.hops) << row.radix;
    EXPECT_EQ(hops.blocks(), row.blocks) << row.radix;
  }
}

/// Of any way.
int most_hops(const FloydHops& hops) {
  std::vector<int> of_way(static_cast<std::size_t>(hops.ranks()), 0);
  for (const FloydHops::Hop& hop : hops.all()) {
    for (const int way : hop.ways) ++of_way[static_cast<std::size_t>(way)];
  }
  return *std::max_element(of_way.begin(), of_way.end());
}

TEST(Floyd, IsProvedForAnyNumberOfRanksAndRadix) {
  for (int ranks = 1; ranks <= (is_full() ? 40 : 20); ++ranks) {
    for (const int radix : {2, 3, 4, 5, 8, 64}) {
      for (const auto& [slots, window] : {std::pair{4, 1}, std::pair{2, 1}, std::pair{1, 1}, std::pair{3, 2}}) {
        if (!is_full() && (ranks + radix + slots) % 3 != 0) continue;
        const PlanRequest request = request_of(ranks, radix, slots, window);
        const Verdict verdict = verify(floyd(), request);
        ASSERT_TRUE(verdict.ok()) << describe(request) << " radix " << radix << ": " << verdict.faults.front();
        EXPECT_EQ(verdict.height, most_hops(FloydHops(ranks, radix))) << describe(request) << " radix " << radix;
      }
    }
  }
}

TEST(Floyd, RandomRunsAgree) {
  const std::vector<Seed> seeds = seeds_of("verify_exchanges_test", 1);
  std::uint64_t number = 0;
  for (const int ranks : {2, 3, 4, 6, 8, 9}) {
    for (const int radix : {2, 3, 4}) {
      for (const auto& [slots, window] : {std::pair{2, 1}, std::pair{3, 2}, std::pair{4, 2}}) {
        const PlanRequest request = request_of(ranks, radix, slots, window);
        ExpressionPool pool;
        const Verdict verdict = verify(floyd(), request, pool);
        const std::vector<Plan> plans = plan_all(floyd(), request);
        ++number;
        for (const Seed& seed : seeds) {
          const RandomRun run = {seed.value + number, 4, 3};
          ASSERT_EQ(run_randomly(request, plans, verdict.result_expression, pool, run), "")
              << describe(request) << " radix " << radix << "; " << seed;
        }
      }
    }
  }
}

TEST(Floyd, BundlesAreShownAsText) {
  const PlanRequest request = request_of(8, 2);
  const std::string text = draw_text(request, floyd().plan(request, 0));
  EXPECT_NE(text.find("send: own -> rank 1 (bundle of 4), blocks"), std::string::npos) << text;
  EXPECT_NE(text.find("pass on: rank 1 (bundle of 4) -> rank 2 (bundle of 4), block"), std::string::npos) << text;
}

/// Powers of two ranks on a switch, radix 2: the paper's p/2 blocks in each of log2 p rounds.
TEST(FloydModel, CostsAreThoseOfThePaper) {
  const FloydCost cost = floyd_cost(Topology::node(64), 2);
  EXPECT_EQ(cost.rounds, 6);
  EXPECT_EQ(cost.messages, 6);
  EXPECT_EQ(cost.blocks, 6 * 32);
  EXPECT_EQ(cost.link_blocks, 6 * 32);
  // On a torus neighbours meet on links: 1 + 2 + 4 messages of 32 blocks in each dimension of 8 x 8.
  EXPECT_EQ(floyd_cost(Topology::torus({8, 8, 1}, {true, true, true}, 2), 2).link_blocks, 2 * 7 * 32);
  EXPECT_EQ(floyd_cost(Topology::node(100), 4).messages, 10);
  EXPECT_EQ(floyd_cost(Topology::node(100), 8).blocks, 207);
}

/// Than a message per pair, between nodes.
bool is_quicker(const Topology& topology, std::size_t block_bytes) {
  PlanRequest request;
  request.collective = Collective::alltoall;
  request.topology = topology;
  const std::size_t bytes = block_bytes * static_cast<std::size_t>(topology.ranks());
  return std::isfinite(floyd().estimate({.plan = request, .bytes = bytes, .several_nodes = true}).seconds);
}

TEST(FloydModel, ShortBlocksGoTogetherAndLongOnesApart) {
  for (const Topology& topology : {Topology::node(32), Topology::node(64), Topology::node(100), Topology::node(1024),
                                   Topology::torus({8, 8, 1}, {true, true, true}, 2), Topology::torus({4, 4, 4})}) {
    EXPECT_TRUE(is_quicker(topology, 8)) << topology.text() << topology.ranks();
    EXPECT_FALSE(is_quicker(topology, 32 << 10)) << topology.text() << topology.ranks();
    EXPECT_FALSE(is_quicker(topology, 1 << 20)) << topology.text() << topology.ranks();
    // Longer blocks make more hops dearer, so the radix never falls.
    int before = 2;
    for (std::size_t bytes = 8; bytes <= 64 << 10; bytes *= 2) {
      const int radix = floyd_radix(topology, bytes);
      EXPECT_GE(topology.kind() == Topology::Kind::node ? radix : before, before) << bytes;
      before = radix;
    }
  }
  EXPECT_FALSE(is_quicker(Topology::node(2), 8)) << "two ranks have one message each";
  EXPECT_FALSE(is_quicker(Topology::node(1), 8));
}

TEST(FloydModel, DecidesBetweenNodesOnly) {
  PlanRequest request = request_of(64, 2);
  const auto chosen = [&](std::size_t block_bytes, bool several_nodes) {
    const std::size_t bytes = block_bytes * static_cast<std::size_t>(request.topology.ranks());
    return select(TuneTable::built_in(), {}, request, bytes, several_nodes);
  };
  EXPECT_EQ(chosen(8, false).algorithm->name, "direct");
  const Selected between = chosen(8, true);
  EXPECT_EQ(between.algorithm->name, "floyd");
  EXPECT_NE(between.explanation.find("by the model of rounds: floyd of radix "), std::string::npos)
      << between.explanation;
  EXPECT_EQ(chosen(1 << 20, true).algorithm->name, "direct");
  request.topology = Topology::torus({8, 8, 1}, {true, true, true}, 2);
  EXPECT_EQ(chosen(8, false).algorithm->name, "floyd");
  EXPECT_EQ(chosen(1 << 20, false).algorithm->name, "a2at");
}

TEST(FloydModel, ChoosesTheRadixOfAForcedFloydUnlessARowDoes) {
  const PlanRequest request = request_of(64, 2);
  const Selected forced = select(TuneTable::built_in(), {.algorithm = "floyd"}, request, 64 * 8);
  EXPECT_EQ(forced.request.tuning.radix, floyd_radix(request.topology, 8));
  const auto with_row = [&](const std::string& radix) {
    const TuneTable table = TuneTable::parse(
        R"({"version": 1, "rows": [{"collective": "alltoall", "ranks": [1, 64], "bytes_max": null,
            "algorithm": "floyd", "segment": 512, "slots": 4, "window": 1)" +
            radix + "}]}",
        "test");
    return select(table, {}, request, 64 * 8).request.tuning.radix;
  };
  EXPECT_EQ(with_row(R"(, "radix": 7)"), 7);
  EXPECT_EQ(with_row(""), floyd_radix(request.topology, 8));
}

TEST(Floyd, RefusesARadixBelowTwoAndOtherCollectives) {
  EXPECT_EQ(floyd().why_not(request_of(4, 1)), "the radix is 1; it must be at least 2");
  EXPECT_EQ(floyd().why_not(request_of(4, -3)), "the radix is -3; it must be at least 2");
  PlanRequest request = request_of(4, 2);
  request.collective = Collective::allreduce;
  EXPECT_EQ(floyd().why_not(request), "floyd does alltoall; not allreduce");
}

using Break = std::function<void(std::vector<Plan>& plans)>;

/// The first fault of an alltoall of 8 ranks after it was broken.
std::string fault_of(const Break& break_it) {
  const PlanRequest request = request_of(8, 2);
  std::vector<Plan> plans = plan_all(floyd(), request);
  break_it(plans);
  ExpressionPool pool;
  const Verdict verdict = verify(request, plans, pool);
  return verdict.ok() ? "" : verdict.faults.front();
}

Flow& flow_called(Plan& plan, std::string_view label) {
  for (Flow& flow : plan.lanes[0].flows) {
    if (flow.label == label) return flow;
  }
  return plan.lanes[0].flows.front();
}

TEST(Floyd, BrokenBundlesAreRejected) {
  EXPECT_EQ(fault_of([](auto&) {}), "");
  const auto on_all = [](int bundle) {
    return fault_of([bundle](std::vector<Plan>& plans) {
      for (Plan& plan : plans) {
        for (std::vector<Stream>* streams : {&plan.in, &plan.out}) {
          for (Stream& stream : *streams) stream.bundle = bundle;
        }
        plan.bundle_max = std::max(bundle, 1);
      }
    });
  };
  EXPECT_NE(on_all(3).find("bundles of 3 do not divide 4 messages per segment"), std::string::npos) << on_all(3);
  EXPECT_NE(on_all(0).find("bundles of 0 do not divide 4 messages per segment"), std::string::npos) << on_all(0);
  EXPECT_EQ(on_all(1), "") << "one message at a time is slower, not wrong";
  EXPECT_EQ(on_all(2), "");
  EXPECT_EQ(fault_of([](std::vector<Plan>& plans) { plans[2].bundle_max = 3; }),
            "rank 2: bundle_max is 3 but the largest bundle of any rank is 4");
  const std::string one_end = fault_of([](std::vector<Plan>& plans) { plans[1].in[0].bundle = 2; });
  EXPECT_NE(one_end.find("the two ends differ"), std::string::npos) << one_end;
  const std::string landing = fault_of([](std::vector<Plan>& plans) {
    for (Plan& plan : plans) plan.in[0].delivery = plan.out[0].delivery = Delivery::write_in_place;
  });
  EXPECT_NE(landing.find("travel in bundles"), std::string::npos) << landing;
}

/// The steps of the flow from the last to the first, each with the message that it had.
void turn_round(Plan& plan, std::string_view label) {
  std::vector<Flow>& flows = plan.lanes[0].flows;
  const auto at = std::find_if(flows.begin(), flows.end(),
                               [&](const Flow& flow) { return flow.label == label && flow.walk.count > 1; });
  ASSERT_NE(at, flows.end());
  const Flow whole = *at;
  std::vector<Flow> turned;
  for (int place = whole.walk.count - 1; place >= 0; --place) {
    Flow one = whole;
    one.walk = {whole.walk.block(place), 1, 1, 8};
    for (StreamEnd& end : one.targets) end.position = static_cast<std::uint16_t>(end.position + place);
    for (StreamEnd& end : one.sources) {
      if (end.stream != kOwn) end.position = static_cast<std::uint16_t>(end.position + place);
    }
    turned.push_back(one);
  }
  flows.insert(flows.erase(at), turned.begin(), turned.end());
}

TEST(Floyd, BundlesOutOfOrderAreRejected) {
  const std::string produced = fault_of([](std::vector<Plan>& plans) { turn_round(plans[0], "send"); });
  EXPECT_NE(produced.find("is not produced after the one before it in its bundle"), std::string::npos) << produced;
  const std::string consumed = fault_of([](std::vector<Plan>& plans) { turn_round(plans[0], "take"); });
  EXPECT_NE(consumed.find("is not consumed last of its bundle"), std::string::npos) << consumed;
}

TEST(Floyd, BlocksPassedOnToOthersAreRejected) {
  const std::string walk = fault_of([](std::vector<Plan>& plans) {
    Walk& passed = flow_called(plans[5], "pass on").walk;
    passed.first = (passed.first + 1) % 8;
  });
  EXPECT_NE(walk.find("passes on a block for rank"), std::string::npos) << walk;
  const std::string taken = fault_of([](std::vector<Plan>& plans) {
    Walk& take = flow_called(plans[5], "take").walk;
    take.first = (take.first + 1) % 8;
  });
  EXPECT_NE(taken.find("carries another block than is expected"), std::string::npos) << taken;
}

}  // namespace
}  // namespace torii::tests
