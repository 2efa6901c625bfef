// SPDX-License-Identifier: Apache-2.0
// neighbor_exchange, and the tutorial of docs/contributing.md that adds it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "collectives/proof/verify.hpp"
#include "collectives/selection/catalogue.hpp"
#include "collectives/selection/selection.hpp"
#include "tests/collectives/proof/test_verify_plans.hpp"
#include "tests/support/places.hpp"

namespace torii::tests {
namespace {

const Algorithm& algorithm() { return *find_algorithm("neighbor_exchange"); }

PlanRequest gather_on(const Topology& topology, Tuning tuning = {}) {
  PlanRequest request;
  request.collective = Collective::all_gather;
  request.topology = topology;
  request.tuning = tuning;
  return request;
}

Topology ring_of(int ranks) { return Topology::torus({ranks, 1, 1}, {true, true, true}, 1); }

/// The blocks of the messages of a stream, by position: those that the flows take from it, or feed into it.
std::vector<int> blocks_of(const Plan& plan, std::size_t stream, std::vector<StreamEnd> Flow::*ends, int messages) {
  std::vector<int> blocks(static_cast<std::size_t>(messages), -1);
  for (const Lane& lane : plan.lanes) {
    for (const Flow& flow : lane.flows) {
      for (const StreamEnd& end : flow.*ends) {
        if (end.stream != stream) continue;
        for (int i = 0; i < flow.walk.count; ++i)
          blocks[end.position + static_cast<std::size_t>(i)] = flow.walk.block(i);
      }
    }
  }
  return blocks;
}

std::vector<int> taken_from(const Plan& plan, int peer) {
  for (std::size_t i = 0; i < plan.in.size(); ++i) {
    if (plan.in[i].peer == peer) return blocks_of(plan, i, &Flow::sources, plan.in[i].messages_per_segment);
  }
  return {};
}

std::vector<int> sent_to(const Plan& plan, int peer) {
  for (std::size_t i = 0; i < plan.out.size(); ++i) {
    if (plan.out[i].peer == peer) return blocks_of(plan, i, &Flow::targets, plan.out[i].messages_per_segment);
  }
  return {};
}

/// The positions that the tutorial lists for rank 0 of 6.
TEST(NeighborExchange, PositionsAreThoseOfTheTutorial) {
  const Plan plan = algorithm().plan(gather_on(ring_of(6)), 0);
  EXPECT_EQ(taken_from(plan, 1), (std::vector{1, 2, 3}));
  EXPECT_EQ(taken_from(plan, 5), (std::vector{5, 4}));
  EXPECT_EQ(sent_to(plan, 1), (std::vector{0, 5, 4}));
  EXPECT_EQ(sent_to(plan, 5), (std::vector{0, 1}));
}

TEST(NeighborExchange, IsProvedOnAllEvenNumbersOfRanks) {
  for (int ranks = 2; ranks <= 40; ranks += 2) {
    for (const Topology& topology : {Topology::node(ranks), ring_of(ranks)}) {
      const Verdict verdict = verify(algorithm(), gather_on(topology, {4096, 2, 1, false}));
      ASSERT_TRUE(verdict.ok()) << ranks << ": " << verdict.faults.front();
      EXPECT_EQ(verdict.height, ranks / 2);
      EXPECT_EQ(verdict.slots_least, ranks > 4 ? 2 : 1) << ranks;
    }
  }
}

TEST(NeighborExchange, RefusalsSayWhatIsWrong) {
  for (const int ranks : {3, 5, 17}) {
    EXPECT_EQ(algorithm().why_not(gather_on(Topology::node(ranks))),
              "neighbor_exchange pairs neighbours, so it needs an even number of ranks, there are " +
                  std::to_string(ranks) + "; use ring");
  }
  EXPECT_EQ(algorithm().why_not(gather_on(Topology::node(65538))),
            "neighbor_exchange is for up to 65536 ranks, there are 65538");
  EXPECT_EQ(algorithm().why_not(gather_on(Topology::node(6), {4096, 1, 1, false})),
            "slots is 1, but all ranks wait for their neighbours unless there are 2");
}

/// Chosen on rings of links only, between short vectors and long ones.
TEST(NeighborExchange, IsChosenOnRingsOfLinks) {
  const auto chosen = [](const Topology& topology, std::size_t bytes) {
    return std::string(select(TuneTable::built_in(), {}, gather_on(topology), bytes).algorithm->name);
  };
  EXPECT_EQ(chosen(ring_of(8), 2048), "recursive_doubling");
  EXPECT_EQ(chosen(ring_of(8), 32768), "neighbor_exchange");
  EXPECT_EQ(chosen(ring_of(8), 131072), "neighbor_exchange");
  EXPECT_EQ(chosen(ring_of(8), 1 << 20), "bucket");
  EXPECT_EQ(chosen(ring_of(7), 32768), "bucket") << "an odd number";
  EXPECT_EQ(chosen(Topology::torus({8, 1, 1}, {false, false, false}, 1), 32768), "bucket") << "a line";
  EXPECT_EQ(chosen(Topology::torus({4, 2, 1}), 32768), "bucket") << "two dimensions";
  EXPECT_EQ(chosen(Topology::torus({4, 1, 1}, {true, true, true}, 1, 2), 32768), "ring") << "two ranks on a node";
  EXPECT_EQ(chosen(ring_of(8).with_positions({0, 2, 4, 6, 1, 3, 5, 7}), 32768), "ring") << "a rank map";
}

std::string content(const std::filesystem::path& path) {
  std::ifstream file(std::filesystem::path(source_dir()) / path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Every piece of C++ in docs/contributing.md stands in the algorithm's file, to the letter.
TEST(NeighborExchange, CodeOfTheTutorialStandsInTheFile) {
  const std::string page = content("docs/contributing.md");
  const std::string source = content("collectives/algorithms/neighbor_exchange.cpp");
  const std::string fence = "```cpp\n";
  int pieces = 0;
  for (std::size_t at = page.find(fence); at != std::string::npos; at = page.find(fence, at)) {
    at += fence.size();
    const std::string piece = page.substr(at, page.find("```", at) - at);
    EXPECT_NE(source.find(piece), std::string::npos) << "not in neighbor_exchange.cpp:\n" << piece;
    ++pieces;
  }
  EXPECT_EQ(pieces, 4) << "the private and the public part of the class, the refusals, the row";
}

}  // namespace
}  // namespace torii::tests
