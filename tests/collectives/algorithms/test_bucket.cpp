// SPDX-License-Identifier: Apache-2.0
// bucket: what it costs on tori and meshes, the order in which it combines, and few slots for many blocks.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "collectives/building/bucket_parts.hpp"
#include "collectives/proof/verify.hpp"
#include "runtime/topology/routing.hpp"
#include "tests/collectives/proof/test_verify_plans.hpp"

namespace torii::tests {
namespace {

const Algorithm& bucket() { return *find_algorithm("bucket"); }

PlanRequest bucket_request(const Topology& topology, Collective collective = Collective::allreduce, int slots = 8) {
  return {collective, topology, 0, Determinism::run, false, {4096, slots, 2, false}};
}

Verdict proved(const PlanRequest& request) {
  const Verdict verdict = verify(bucket(), request);
  EXPECT_TRUE(verdict.ok()) << describe(request) << ": " << verdict.faults.front();
  return verdict;
}

/// The whole vector as a number of messages.
double vector_messages(const PlanRequest& request) { return bucket().plan(request, 0).blocks; }

TEST(Bucket, LoadsAllLinksOfASquareTorusEqually) {
  for (const char* text : {"torus:2", "torus:5", "torus:2x2", "torus:3x3", "torus:4x4", "torus:5x5", "torus:2x2x2",
                           "torus:3x3x3", "torus:1x3x3", "torus:4x1x4"}) {
    int ranks = 1;
    for (const char* at = text; *at != 0; ++at) ranks *= *at >= '1' && *at <= '9' ? *at - '0' : 1;
    const Topology torus = Topology::parse(text, ranks);
    const int dimensions = bucket_dimensions(torus);
    for (const Collective collective : {Collective::allreduce, Collective::all_gather, Collective::reduce_scatter}) {
      const PlanRequest request = bucket_request(torus, collective);
      const Verdict verdict = proved(request);
      // Every rank sends its share of the vector once for the reduce-scatter and once for the all-gather, over 2D
      // links.
      const double ways = collective == Collective::allreduce ? 2 : 1;
      const double ideal = ways * (ranks - 1) / ranks * vector_messages(request) / (2 * dimensions);
      EXPECT_DOUBLE_EQ(verdict.busiest_link_messages, ideal) << describe(request);
      int rounds = 0;
      for (const int extent : torus.extents()) rounds += extent - 1;
      EXPECT_EQ(verdict.height, ways * rounds) << describe(request);
    }
  }
}

/// The longer dimension's links carry more: 3/4 of its own parts and 1/2 of a quarter of the other's, both ways.
TEST(Bucket, LoadsLongDimensionsMore) {
  const PlanRequest request = bucket_request(Topology::torus({4, 2, 1}, {true, true, false}, 2));
  EXPECT_DOUBLE_EQ(proved(request).busiest_link_messages / vector_messages(request), 2 * (3.0 / 4 + 3.0 / 4 / 2) / 4);
}

/// A folded ring crosses each cable of a line once each way, so both directions together cross it twice.
TEST(Bucket, FoldsRingsOntoLines) {
  for (const int extent : {3, 4, 5}) {
    const Topology line = Topology::torus({extent, 1, 1}, {false, false, false}, 1);
    const PlanRequest request = bucket_request(line);
    EXPECT_DOUBLE_EQ(proved(request).busiest_link_messages / vector_messages(request), 2.0 * (extent - 1) / extent);
    const BucketPart upwards(line, 0);
    const BucketPart downwards(line, 1);
    int node = 0;
    std::set<int> seen;
    for (int step = 0; step < extent; ++step) {
      const int next = upwards.along(node, 0, 1);
      EXPECT_LE(std::abs(next - node), 2);
      EXPECT_EQ(downwards.along(next, 0, 1), node);
      EXPECT_TRUE(seen.insert(next).second);
      node = next;
    }
    EXPECT_EQ(node, 0);
  }
}

TEST(Bucket, PositionsReadBack) {
  for (const Topology& shape :
       {Topology::torus({4, 3, 2}), Topology::torus({5, 1, 4}, {false, true, true}), Topology::torus({1, 1, 1})}) {
    for (int number = 0; number < bucket_parts(shape); ++number) {
      const BucketPart part(shape, number);
      for (int node = 0; node < shape.ranks(); ++node) EXPECT_EQ(part.node(part.positions(node)), node);
    }
  }
}

/// With few slots blocks go round in smaller groups; no order changes with them.
TEST(Bucket, LivesOnFewSlots) {
  for (const Topology& topology :
       {Topology::torus({4, 4, 1}), Topology::torus({3, 3, 3}), Topology::torus({5, 2, 3})}) {
    ExpressionPool pool;
    const std::vector<ExpressionId> expressions = verify(bucket(), bucket_request(topology), pool).result_expression;
    ASSERT_FALSE(expressions.empty());
    for (const int slots : {2, 3, 5, 16}) {
      const PlanRequest request = bucket_request(topology, Collective::allreduce, slots);
      const Verdict verdict = verify(bucket(), request, pool);
      ASSERT_TRUE(verdict.ok()) << describe(request) << ": " << verdict.faults.front();
      EXPECT_LE(verdict.slots_least, slots);
      EXPECT_EQ(verdict.result_expression, expressions) << "slots change no order";
    }
  }
  const std::string reason = bucket().why_not(bucket_request(Topology::torus({3, 1, 1}), Collective::allreduce, 1));
  EXPECT_NE(reason.find("slots is 1, but all ranks of a ring of 3"), std::string::npos) << reason;
  EXPECT_EQ(bucket().why_not(bucket_request(Topology::torus({2, 2, 1}), Collective::allreduce, 1)), "");
}

TEST(Bucket, RefusesMoreRanksThanAStreamCanCount) {
  EXPECT_EQ(bucket().why_not(bucket_request(Topology::torus({255, 257, 1}))), "");
  const std::string reason = bucket().why_not(bucket_request(Topology::torus({256, 256, 1})));
  EXPECT_NE(reason.find("bucket is for up to 65535 ranks, there are 65536"), std::string::npos) << reason;
}

TEST(Bucket, OrderStartsAfterTheBlocksOwner) {
  const auto text = [](const Topology& topology, Collective collective, int block) {
    ExpressionPool pool;
    return pool.text(bucket().order(bucket_request(topology, collective), block, pool));
  };
  const Topology ring = Topology::torus({3, 1, 1});
  EXPECT_EQ(text(ring, Collective::allreduce, 0), "((1 2) 0)");
  EXPECT_EQ(text(ring, Collective::allreduce, 1), "((2 0) 1)");
  EXPECT_EQ(text(ring, Collective::allreduce, 3), "((2 1) 0)") << "the other way round";
  EXPECT_EQ(text(ring, Collective::reduce_scatter, 2), "((2 0) 1)") << "part 0 of rank 1's block";
  EXPECT_EQ(text(ring, Collective::reduce_scatter, 3), "((0 2) 1)") << "part 1 of rank 1's block";
  const Topology square = Topology::torus({2, 2, 1});
  EXPECT_EQ(text(square, Collective::allreduce, 0), "((3 2) (1 0))") << "along x, then y";
  EXPECT_EQ(text(square, Collective::allreduce, 8), "((3 1) (2 0))") << "along y, then x";
}

/// Ranks of one node share its links: each sends its slice, so the links carry what one rank's would.
TEST(Bucket, SlicesOfANodeLoadLinksLikeOneRank) {
  const PlanRequest request = bucket_request(Topology::torus({3, 3, 1}, {true, true, false}, 2, 2));
  const Verdict verdict = proved(request);
  EXPECT_DOUBLE_EQ(verdict.busiest_link_messages / vector_messages(request), 16.0 / 36);
  EXPECT_EQ(verdict.height, 8 + 2) << "from mates, round the rings and back, to mates";
  ExpressionPool pool;
  const PlanRequest pairs = bucket_request(Topology::torus({2, 1, 1}, {true, false, false}, 1, 2));
  EXPECT_EQ(pool.text(bucket().order(pairs, 0, pool)), "(((2 3) 0) 1)");
  for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter}) {
    const std::string reason = bucket().why_not(bucket_request(pairs.topology, collective));
    EXPECT_NE(reason.find("on nodes of several ranks bucket does allreduce only"), std::string::npos) << reason;
  }
}

/// All cables of an extent of 2 are used: the two directions take turns.
TEST(Bucket, UsesBothCablesOfAnExtentOfTwo) {
  const Topology pair = Topology::torus({2, 1, 1});
  const Plan plan = bucket().plan(bucket_request(pair), 0);
  std::set<LinkId> links;
  for (std::size_t turn = 0; turn < plan.out.size(); ++turn) {
    std::vector<LinkId> way;
    append_route(pair, 0, 1, static_cast<int>(turn), way);
    links.insert(way.front());
  }
  EXPECT_EQ(links.size(), 2U);
  EXPECT_DOUBLE_EQ(proved(bucket_request(pair)).busiest_link_messages, 2);
}

}  // namespace
}  // namespace torii::tests
