// SPDX-License-Identifier: Apache-2.0
// The drawer: its text line by line, its SVG by what it contains.
#include <gtest/gtest.h>

#include "collectives/drawing/draw.hpp"
#include "collectives/drawing/draw_schedule.hpp"
#include "collectives/proof/verify.hpp"
#include "runtime/base/status.hpp"
#include "tests/collectives/algorithms/cluster_trees.hpp"
#include "tests/collectives/proof/test_verify_plans.hpp"

namespace torii::tests {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

/// The value of the first attribute of that name behind `from`.
double attribute(const std::string& text, const std::string& name, std::size_t from) {
  return std::stod(text.substr(text.find(name + "=\"", from) + name.size() + 2));
}

TEST(DrawText, OneLinePerFlow) {
  const PlanSet set = up_and_down();
  EXPECT_EQ(draw_text(set.request, set.plans),
            "allreduce on node, 3 ranks, 1 block, 2 slots per stream, segments of 32768 bytes\n"
            "rank 0\n"
            "  lane 0, window 2\n"
            "    up tree 0: own + child 1 -> keep, local, block 0\n"
            "  lane 1, window 2\n"
            "    down tree 0: local -> child 1, block 0\n"
            "rank 1\n"
            "  lane 0, window 2\n"
            "    up tree 0: own + child 2 -> parent 0, block 0\n"
            "  lane 1, window 2\n"
            "    down tree 0: parent 0 -> keep, child 2, block 0\n"
            "rank 2\n"
            "  lane 0, window 2\n"
            "    up tree 0: own -> parent 1, block 0\n"
            "  lane 1, window 2\n"
            "    down tree 0: parent 1 -> keep, block 0\n");
}

TEST(DrawText, OneRank) {
  const PlanSet set = halves(true);
  EXPECT_EQ(draw_text(set.request, set.plans[1]),
            "allreduce on node, 2 ranks, 2 blocks, 2 slots per stream, segments of 32768 bytes\n"
            "rank 1\n"
            "  lane 0, window 2\n"
            "    give: own -> rank 0 (read in place), block 0\n"
            "    reduce: rank 0 (read in place) + own -> keep, rank 0 (write in place), block 1\n"
            "    take: rank 0 (write in place) -> keep, block 0\n");
}

TEST(DrawText, TokensWalksFoldsAndRoots) {
  PlanSet set = exchange();
  set.request.collective = Collective::reduce;
  set.request.root = 1;
  Plan& plan = set.plans[0];
  plan.blocks = 12;
  plan.dealing = Dealing::block_cyclic;
  plan.out[0].wide = true;
  plan.lanes[0].flows[0].sources.clear();
  plan.lanes[0].flows[0].label = "";
  plan.lanes[0].flows[0].walk = {2, -1, 3, 12};
  plan.lanes[0].flows[1].fold = Fold::canonical;
  plan.lanes[0].flows[1].walk = {0, 1, 10, 12};
  EXPECT_EQ(draw_text(set.request, plan),
            "reduce on node, 2 ranks, root 1, 12 blocks block-cyclic, 2 slots per stream, segments of 32768 bytes\n"
            "rank 0\n"
            "  lane 0, window 2\n"
            "    flow: token -> rank 1 (wide), blocks 2 1 0\n"
            "    combine: canonical(own + rank 1) -> keep, blocks 0 1 2 3 4 5 6 7 ... 9 (10)\n");
}

TEST(DrawSvg, RanksStreamsAndLegend) {
  const PlanSet set = up_and_down();
  const std::string svg = draw_svg(set.request, set.plans);
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_EQ(count(svg, "class=\"rank\""), 3u);
  EXPECT_EQ(count(svg, "class=\"stream\""), 5u);
  EXPECT_EQ(count(svg, ">up tree 0, block 0</text>"), 1u);
  EXPECT_EQ(count(svg, ">down tree 0, block 0</text>"), 1u);
  EXPECT_EQ(count(svg, "<title>2 to 1: up tree 0, block 0</title>"), 1u);
  EXPECT_NE(svg.find("<title>allreduce on node of 3 ranks</title>"), std::string::npos);
  EXPECT_EQ(count(svg, "href"), 0u) << "self-contained";
}

TEST(DrawSvg, SeveralBlocksAndEscapes) {
  PlanSet set = exchange();
  for (Plan& plan : set.plans) {
    plan.blocks = 2;
    plan.lanes[0].flows[0].walk = {0, 1, 2, 2};
    plan.lanes[0].flows[0].label = "a<b & c";
  }
  const std::string svg = draw_svg(set.request, set.plans);
  EXPECT_EQ(count(svg, ">a&lt;b &amp; c, several blocks</text>"), 1u);
}

TEST(DrawSvg, RanksStandOnTheirGrid) {
  PlanRequest request;
  request.topology = Topology::torus({3, 2, 2});
  const Algorithm* algorithm = find_algorithm("trinaryx3");
  ASSERT_NE(algorithm, nullptr);
  const std::vector<Plan> plans = plan_all(*algorithm, request);
  const std::string svg = draw_svg(request, plans);
  std::vector<std::pair<double, double>> at;
  for (std::size_t rank = svg.find("class=\"rank\""); rank != std::string::npos;
       rank = svg.find("class=\"rank\"", rank + 1)) {
    at.emplace_back(attribute(svg, "cx", rank), attribute(svg, "cy", rank));
  }
  ASSERT_EQ(at.size(), 12u);
  EXPECT_LT(at[0].first, at[1].first);
  EXPECT_EQ(at[0].second, at[1].second);
  EXPECT_EQ(at[0].first, at[3].first);
  EXPECT_LT(at[0].second, at[3].second);
  EXPECT_LT(at[0].first, at[6].first) << "layers stand behind each other";
  EXPECT_LT(at[6].first, at[1].first);
  EXPECT_GT(at[0].second, at[6].second);
  std::size_t streams = 0;
  for (const Plan& plan : plans) streams += plan.out.size();
  EXPECT_EQ(count(svg, "class=\"stream\""), streams);
  const double width = attribute(svg, "width", 0);
  const double height = attribute(svg, "height", 0);
  for (const auto& [x, y] : at) {
    EXPECT_TRUE(x > 0 && x < width && y > 0 && y < height);
  }
}

TEST(DrawSvg, RanksOfANodeStandTogether) {
  PlanRequest request;
  request.topology = Topology::torus({2, 1, 1}, {true, false, false}, 1, 2);
  const std::string svg = draw_svg(request, plan_all(*find_algorithm("trinaryx3"), request));
  std::vector<double> x;
  for (std::size_t rank = svg.find("class=\"rank\""); rank != std::string::npos;
       rank = svg.find("class=\"rank\"", rank + 1)) {
    x.push_back(attribute(svg, "cx", rank));
  }
  ASSERT_EQ(x.size(), 4u);
  EXPECT_LT(x[0], x[1]);
  EXPECT_LT(x[1] - x[0], x[2] - x[1]) << "nearer than the next node";
}

TEST(DrawSvg, EveryRowCanBeDrawn) {
  int drawn = 0;
  for (const Topology& topology :
       {Topology::node(5), Topology::torus({4, 4, 4}), Topology::torus({3, 2, 1}, {true, true, true}, 2, 2)}) {
    for (const PlanRequest& request : requests_on(topology, Tuning{})) {
      for (const Algorithm& algorithm : catalogue()) {
        if (!algorithm.why_not(request).empty()) continue;
        const std::vector<Plan> plans = plan_all(algorithm, request);
        const std::string svg = draw_svg(request, plans);
        EXPECT_EQ(count(svg, "class=\"rank\""), plans.size());
        EXPECT_EQ(svg.find("nan"), std::string::npos);
        EXPECT_EQ(count(draw_text(request, plans), "rank 0\n"), 1u);
        ++drawn;
      }
    }
  }
  EXPECT_GT(drawn, 0);
}

TEST(DrawSvg, RefusesWhatCannotBeRead) {
  const PlanSet set = exchange();
  EXPECT_THROW((void)draw_svg(set.request, std::span(set.plans).first(1)), Error);
  PlanRequest request;
  request.topology = Topology::node(kRanksDrawnMost + 1);
  const std::vector<Plan> plans(static_cast<std::size_t>(kRanksDrawnMost) + 1);
  EXPECT_THROW((void)draw_svg(request, plans), Error);
}

TEST(DrawSchedule, TextSaysWhatFollowsWhat) {
  const Schedule schedule = find_schedule(star_of(3, false), 0, 1'000'000);
  EXPECT_EQ(draw_schedule_text(schedule),
            "1. 0.000 ms to 10.000 ms: 0 > 1\n"
            "2. 10.000 ms to 20.000 ms: 0 > 2, after 1\n");
}

TEST(DrawSchedule, TreeAndChartShowEveryTransfer) {
  const TreeTopology tree = tree_of({2, 3, 2, true, true});
  const Schedule schedule = find_schedule(tree, 0, 1'000'000);
  for (const bool backwards : {false, true}) {
    const std::string svg = draw_schedule_svg(tree, schedule, "twelve & <mixed>", backwards);
    EXPECT_EQ(count(svg, "class=\"rank\""), 12u);
    EXPECT_EQ(count(svg, "class=\"relay\""), 8u);
    EXPECT_EQ(count(svg, "class=\"link\""), tree.links().size());
    EXPECT_EQ(count(svg, "class=\"transfer\""), 11u);
    EXPECT_EQ(count(svg, "class=\"bar\""), 11u);
    EXPECT_EQ(count(svg, "twelve &amp; &lt;mixed>"), 2u);
    // The first transfer of the broadcast is the last one of the reduce.
    EXPECT_EQ(count(svg, backwards ? "6 to 0, 99.90" : "0 to 6, 0.000 ms to 87.04"), 1u);
    EXPECT_EQ(count(svg, "<svg"), 1u);
    EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
    for (std::size_t at = svg.find("class=\"bar\""); at != std::string::npos; at = svg.find("class=\"bar\"", at + 1)) {
      EXPECT_LE(attribute(svg, "x", at) + attribute(svg, "width", at), attribute(svg, "width", 0));
    }
  }
}

}  // namespace
}  // namespace torii::tests
