// SPDX-License-Identifier: Apache-2.0
// Whole calls on virtual time: the figures that are published, steady states against full runs, and faults that are
// named.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "collectives/proof/verify.hpp"
#include "collectives/schedules/schedule.hpp"
#include "collectives/selection/catalogue.hpp"
#include "collectives/trees/trees.hpp"
#include "runtime/base/status.hpp"
#include "tests/support/test_run.hpp"
#include "tests/transports/simulated/calls.hpp"
#include "tools/simulation/ring_places.hpp"
#include "tools/simulation/steady.hpp"

namespace torii::simulated {
namespace {

using tests::is_full;

double call_us(Collective collective, std::size_t bytes, int segments, int engines) {
  const std::size_t segment_bytes = (bytes / 3 / static_cast<std::size_t>(segments) + 64) / 64 * 64;
  PlanRequest request = request_on("torus:8x8x8", 512, segment_bytes, collective);
  request.tuning.common_root = true;
  Call call = make_call("trinaryx3", request, bytes);
  call.network.engines = engines;
  return microseconds(run(call));
}

/// Up and down as one call, or one after the other.
double moved_GBps(std::size_t bytes, int segments, int engines, bool overlap) {
  const double us = overlap ? call_us(Collective::allreduce, bytes, segments, engines)
                            : call_us(Collective::reduce, bytes, segments, engines) +
                                  call_us(Collective::broadcast, bytes, segments, engines);
  return 2 * static_cast<double>(bytes) / us / 1e3;
}

struct Figure {
  std::size_t bytes;
  int segments;  ///< per tree: the best of 1, 4, 16, 64, 256
  int engines;
  bool overlap;
  double GBps;  ///< of the model that trinaryx3's figures come from
};

/// With the trees of the paper, which hang from one root.
TEST(Published, FiguresOfTrinaryx3On8x8x8) {
  std::vector<Figure> figures = {{32 << 10, 16, 1, true, 0.67},  {32 << 10, 16, 3, true, 0.82},
                                 {32 << 10, 16, 4, false, 0.80}, {32 << 10, 16, 4, true, 0.85},
                                 {32 << 10, 16, 6, true, 0.85},  {1 << 20, 64, 4, true, 9.7}};
  const std::array<Figure, 14> longer = {{{1 << 20, 64, 1, true, 3.7},
                                          {1 << 20, 64, 3, true, 8.5},
                                          {1 << 20, 64, 4, false, 7.6},
                                          {1 << 20, 64, 6, true, 10.7},
                                          {32 << 20, 256, 1, true, 4.8},
                                          {32 << 20, 256, 3, true, 13.4},
                                          {32 << 20, 256, 4, false, 13.4},
                                          {32 << 20, 256, 4, true, 17.4},
                                          {32 << 20, 256, 6, true, 24.6},
                                          {256 << 20, 256, 1, true, 4.9},
                                          {256 << 20, 256, 3, true, 13.9},
                                          {256 << 20, 256, 4, false, 13.8},
                                          {256 << 20, 256, 4, true, 18.0},
                                          {256 << 20, 256, 6, true, 25.5}}};
  if (is_full()) figures.insert(figures.end(), longer.begin(), longer.end());
  for (const Figure& figure : figures) {
    const double got = moved_GBps(figure.bytes, figure.segments, figure.engines, figure.overlap);
    EXPECT_NEAR(got, figure.GBps, 0.05 * figure.GBps)
        << figure.bytes << " bytes, " << figure.engines << " engines, overlap " << figure.overlap;
  }
}

TEST(Published, LinksShared) {
  const auto percent = [](const char* algorithm, const char* topology, int ranks) {
    const PlanRequest request = request_on(topology, ranks, 4096);
    const Verdict figures = measure(request, plan_all(*find_algorithm(algorithm), request));
    EXPECT_TRUE(figures.ok()) << figures.faults.front();
    return figures.links_shared_percent;
  };
  EXPECT_NEAR(percent("recursive_doubling", "torus:8x8x8", 512), 62.5, 0.05);
  for (const auto& [topology, ranks] :
       {std::pair{"torus:3x3x3", 27}, std::pair{"torus:5x4x3", 60}, std::pair{"torus:3x7", 21}}) {
    EXPECT_EQ(percent("trinaryx3", topology, ranks), 0) << topology;
  }
  if (!is_full()) return;
  // The published 84.7 % are those of partners r xor 2^k; the plan has pairs of its own, since 9216 is no power of two.
  EXPECT_NEAR(percent("recursive_doubling", "torus:48x6x32", 9216), 86.4, 0.05);
  EXPECT_EQ(percent("trinaryx3", "torus:48x6x32", 9216), 0);
}

TEST(Steady, IsTheWholeRunWhereItIsPeriodic) {
  constexpr std::size_t kBytes = std::size_t{60} << 20;
  Call call = make_call("trinaryx3", request_on("torus:4x4x4", 64, 16 << 10), kBytes);
  call.network.engines = 6;
  const Outcome whole = run(call);
  const SteadyOutcome steady = run_steady(call, kBytes, 256);
  EXPECT_EQ(steady.steady, Steady::periodic);
  EXPECT_LT(steady.segments_run, call.shape.layout.segments());
  EXPECT_EQ(steady.outcome.time, whole.time);
  EXPECT_EQ(steady.outcome.messages, whole.messages);
  EXPECT_EQ(steady.outcome.link_bytes, whole.link_bytes);
}

TEST(Steady, IsCloseWhereRanksSway) {
  const std::string topology = is_full() ? "torus:8x8x8" : "torus:3x3x3";
  constexpr std::size_t kBytes = std::size_t{40} << 20;
  PlanRequest request = request_on(topology, is_full() ? 512 : 27, 8 << 10);
  request.tuning.slots = 8;  // the fewer segments ranks can be ahead, the sooner they go at one pace
  Call call = make_call("trinaryx3", request, kBytes);
  // On 8x8x8 two or four engines do not find one pace within this vector: such calls are run whole.
  for (const int engines : is_full() ? std::vector<int>{1, 3, 6} : std::vector<int>{1, 4}) {
    call.network.engines = engines;
    const Outcome whole = run(call);
    const SteadyOutcome steady = run_steady(call, kBytes);
    EXPECT_NE(steady.steady, Steady::none);
    EXPECT_NEAR(microseconds(steady.outcome), microseconds(whole), 0.01 * microseconds(whole)) << engines;
    EXPECT_EQ(steady.outcome.link_bytes, whole.link_bytes);
  }
}

TEST(Steady, ShortAndJitteryCallsAreRunAsTheyAre) {
  PlanRequest request = request_on("torus:3x3", 9, 1 << 10);
  request.tuning.slots = 4;
  Call call = make_call("trinaryx3", request, 9 << 20);
  call.network.jitter_us = 1;
  EXPECT_EQ(run_steady(call, 9 << 20).steady, Steady::none);
  call.network.jitter_us = 0;
  EXPECT_EQ(run_steady(call, 9 << 20, 1 << 20).steady, Steady::none);
  EXPECT_NE(run_steady(call, 9 << 20).steady, Steady::none);
}

/// Four machines behind two relays, one on a slow line: `half` is used in one direction at a time, `full` in both.
Topology lines(const std::string& kind) {
  const std::string text =
      "node a comm\nnode b comm\nnode c comm\nnode d comm\nnode s relay\nnode t relay\n"
      "link a s 100MB/s 100MB/s 15us 20us full\nlink b s 50MB/s 50MB/s 15us 15us full\n"
      "link c s 50MB/s 50MB/s 15us 15us full\nlink s t 100MB/s 100MB/s 15us 15us full\n"
      "link d t 10MB/s 10MB/s 5us 15us " +
      kind + "\n";
  return Topology::of_tree(TreeTopology::parse(text, "a test"), "a test");
}

Call call_on(const Topology& topology, const char* algorithm, Collective collective, std::size_t segment_bytes,
             std::size_t bytes) {
  PlanRequest request;
  request.collective = collective;
  request.topology = topology;
  request.tuning = {.segment_bytes = segment_bytes, .slots = 16, .window = 4};
  Call call = make_call(algorithm, request, bytes);
  call.network.alpha_us = call.network.overhead_us = 0;
  return call;
}

/// The schedule's model lets transfers share a link for which each has a rate of its own, so it is that of maxmin;
/// where no link is shared all models agree.
TEST(Trees, SchedulesAndChainsTakeWhatTheirModelsSay) {
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  const Topology half = lines("half");
  const double scheduled_us = 1e6 * find_schedule(*half.tree(), 0, kBytes).time_s;
  Call scheduled = call_on(half, "scheduled", Collective::broadcast, kBytes, kBytes);
  scheduled.network.sharing = Sharing::maxmin;
  EXPECT_NEAR(microseconds(run(scheduled)), scheduled_us, 1e-6 * scheduled_us);
  const Topology full = lines("full");  // the chain's model knows no other links
  for (const std::size_t segment_bytes : {kBytes, kBytes / 16, kBytes / 256}) {
    const double chain_us = 1e6 * chain_time_s(*full.tree(), 0, kBytes, segment_bytes);
    Call chain = call_on(full, "chain", Collective::broadcast, segment_bytes, kBytes);
    for (const auto sharing : {std::optional<Sharing>(), std::optional(Sharing::min), std::optional(Sharing::maxmin)}) {
      chain.network.sharing = sharing;
      chain.network.engines = sharing ? 1 : 4;  // segments of one stream that share a link come late
      // A put whose link is idle for a moment starts when its credit has come back.
      EXPECT_NEAR(microseconds(run(chain)), chain_us, 0.01 * chain_us) << segment_bytes;
    }
  }
}

/// Every row that serves a tree, in every sharing model: it ends, and no sooner than the slow line lets it.
TEST(Trees, PlansOfAnyRowRun) {
  constexpr std::size_t kBytes = std::size_t{1} << 18;
  const Topology topology = lines("half");
  int calls = 0;
  for (const Algorithm& row : catalogue()) {
    for (const Collective collective : {Collective::broadcast, Collective::reduce, Collective::allreduce,
                                        Collective::all_gather, Collective::reduce_scatter, Collective::alltoall}) {
      PlanRequest request;
      request.collective = collective;
      request.topology = topology;
      if (!row.why_not(request).empty()) continue;
      for (const auto sharing :
           {std::optional<Sharing>(), std::optional(Sharing::min), std::optional(Sharing::maxmin)}) {
        Call call = call_on(topology, std::string(row.name).c_str(), collective, 4 << 10, kBytes);
        call.network.sharing = sharing;
        const bool is_whole = collective == Collective::broadcast || collective == Collective::reduce ||
                              collective == Collective::allreduce;
        const double least_us = static_cast<double>(kBytes) / 10 * (is_whole ? 1 : 0.25);
        EXPECT_GE(microseconds(run(call)), least_us) << row.name << ", " << name(collective);
        ++calls;
      }
    }
  }
  EXPECT_GT(calls, 60);
}

TEST(Run, AWindowOfOneStepPerSegmentChangesNothing) {
  Call call = make_call("trinaryx3", request_on("torus:4x3x3", 36, 2 << 10), 1 << 20);
  const Time narrow = run(call).time;
  call.network.jitter_us = 1e-7;  // less than a tick: windows stay as the plan has them, no message is late
  EXPECT_EQ(run(call).time, narrow);
}

TEST(Run, FoldingSkewAndJitterTakeTime) {
  Call call = make_call("trinaryx3", request_on("torus:3x3x3", 27, 8 << 10), 1 << 20);
  const double plain = microseconds(run(call));
  call.reduce_GBps = 2;
  const double folding = microseconds(run(call));
  // Each rank folds about as many bytes as the vector has.
  EXPECT_GT(folding, (1 << 20) / 2e3 * 26 / 27);
  EXPECT_GT(folding, plain);
  call.reduce_GBps.reset();
  call.skew_us = 50;
  const double skewed = microseconds(run(call));
  EXPECT_GT(skewed, plain);
  EXPECT_LE(skewed, plain + 50 + 1);
  call.skew_us = 0;
  call.network.jitter_us = 3;
  EXPECT_GT(microseconds(run(call)), plain);
  EXPECT_EQ(run(call).time, run(call).time);
}

TEST(Run, NamesWhoWaitsForEver) {
  Call call = make_call("trinaryx3", request_on("torus:3x3", 9, 1 << 10), 1 << 10);
  // Rank 4 combines, but gives nothing on.
  for (Lane& lane : call.plans[4].lanes) lane.flows.front().targets.clear();
  try {
    run(call);
    FAIL() << "ended without rank 4's messages";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::internal);
    EXPECT_NE(std::string(error.what()).find("9 ranks wait for ever; rank 0 in '"), std::string::npos) << error.what();
  }
}

TEST(Rings, TakeAWordForEachEntryAndCredit) {
  Call call = make_call("trinaryx3", request_on("torus:3x3x3", 27, 1 << 10), 1 << 20);
  const auto bytes = [&] { return RingPlaces(call, call.shape).arena_bytes(); };
  const auto streams = static_cast<std::size_t>(call.plans[0].in_streams_max + call.plans[0].out_streams_max);
  EXPECT_EQ(bytes(), streams * 64 * sizeof(std::uint64_t));
  call.shape = call_shape(call.request, call.plans[0], Type::f32, 8 << 10);
  ASSERT_EQ(call.shape.layout.segments(), 4);
  EXPECT_EQ(bytes(), round_up(streams * 4 * sizeof(std::uint64_t), kLineBytes)) << "no more messages than that";
  call.fill = [](int, std::byte*) {};
  EXPECT_GE(bytes(), streams * 4 * (kLineBytes + 1024));
}

TEST(Rings, HaveNoMoreEntriesThanThoseOfTeams) {
  PlanRequest request = request_on("torus:3x3", 9, 1 << 10);
  request.tuning.slots = kRingEntriesMax + 1;
  const Call call = make_call("trinaryx3", request, 1 << 10);
  try {
    run(call);
    FAIL() << "65 entries";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::unsupported);
    EXPECT_NE(std::string(error.what()).find("65 slots"), std::string::npos) << error.what();
  }
}

TEST(Run, WatchesEngines) {
  Call call = make_call("trinaryx3", request_on("torus:3x3", 9, 1 << 10), 64 << 10);
  call.watched = 4;
  const Outcome outcome = run(call);
  ASSERT_FALSE(outcome.uses.empty());
  std::array<Time, kEnginesMax> busy_until{};
  for (const EngineUse& use : outcome.uses) {
    EXPECT_GE(use.begin, busy_until[static_cast<std::size_t>(use.engine)]);
    EXPECT_GT(use.end, use.begin);
    busy_until[static_cast<std::size_t>(use.engine)] = use.end;
  }
}

}  // namespace
}  // namespace torii::simulated
