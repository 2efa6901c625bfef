// SPDX-License-Identifier: Apache-2.0
// The most ranks of a team: what rows plan for 1024 of them, that it fits into standing rings, that such a team runs,
// and that one with a rank more is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/calls/plan_maker.hpp"
#include "collectives/proof/verify.hpp"
#include "collectives/selection/catalogue.hpp"
#include "collectives/selection/selection.hpp"
#include "runtime/base/status.hpp"
#include "runtime/execution/installed_plan.hpp"
#include "tests/conformance/thread_team.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

constexpr int kRanksMost = 1024;

/// A node, a ring and a torus of nodes, and nodes that many ranks share.
std::vector<Topology> shapes_of(int ranks) {
  std::vector<Topology> shapes = {Topology::node(ranks), Topology::parse("torus:" + std::to_string(ranks), ranks),
                                  Topology::parse("torus:1*" + std::to_string(ranks), ranks)};
  int side = 1;
  while ((side + 1) * (side + 1) <= ranks) ++side;
  while (ranks % side != 0) --side;
  const auto text = [](int first, int second) { return std::to_string(first) + "x" + std::to_string(second); };
  if (side > 1) shapes.push_back(Topology::parse("torus:" + text(side, ranks / side), ranks));
  if (side > 1) shapes.push_back(Topology::parse("mesh:" + text(side, ranks / side), ranks));
  if (ranks % 2 == 0) shapes.push_back(Topology::parse("torus:2*" + std::to_string(ranks / 2), ranks));
  if (ranks % 8 == 0) shapes.push_back(Topology::parse("torus:2x2x2*" + std::to_string(ranks / 8), ranks));
  return shapes;
}

std::vector<PlanRequest> requests_on(const Topology& topology) {
  std::vector<PlanRequest> requests;
  for (int collective = 0; collective < kCollectiveCount; ++collective) {
    for (const Determinism determinism : {Determinism::run, Determinism::canonical}) {
      PlanRequest request;
      request.collective = static_cast<Collective>(collective);
      request.topology = topology;
      request.root = has_root(request.collective) ? topology.ranks() / 3 : 0;
      request.determinism = determinism;
      request.wide_wire = combines(request.collective);
      if (determinism == Determinism::run || combines(request.collective)) requests.push_back(request);
    }
  }
  return requests;
}

std::string text_of(const PlanRequest& request) {
  return std::string(name(request.collective)) + " on " + request.topology.text() + " of " +
         std::to_string(request.topology.ranks()) + ", " + std::string(name(request.determinism));
}

bool is_served(const PlanRequest& request) {
  return std::ranges::any_of(catalogue(),
                             [&](const Algorithm& algorithm) { return algorithm.why_not(request).empty(); });
}

/// The refusal names the call, and why those rows refuse that serve the collective elsewhere.
void expect_refused(const PlanRequest& request) {
  try {
    (void)select(TuneTable::built_in(), Forced{}, request, 1000);
    ADD_FAILURE() << text_of(request) << " is refused by all rows, and selected";
  } catch (const Error& error) {
    const std::string text = error.what();
    const std::string ranks = std::to_string(request.topology.ranks());
    EXPECT_EQ(error.status(), Status::unsupported);
    EXPECT_NE(text.find("no algorithm of the catalogue serves reduce_scatter of " + ranks + " ranks, canonical: "),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("node: node is for up to 256 ranks, there are " + ranks), std::string::npos) << text;
  }
}

/// The rings of a team whose members are on one node, or each on a node of its own.
struct RingsOfTeam {
  int channels = 2;
  std::size_t memory_bytes = kUnbounded;
  bool balances = false;
  RingSizes of(int ranks, bool several_nodes) const {
    return several_nodes ? distant_ring_sizes(1, ranks, channels, balances, memory_bytes)
                         : ring_sizes(ranks, channels, memory_bytes);
  }
};

/// Rank 1 has most leaves, in more subtrees than there are streams for them; the last one may have none.
LeafIntervals leaves_of(int ranks) {
  std::vector<std::size_t> counts(static_cast<std::size_t>(ranks), 1);
  counts[1] = 32766;
  if (ranks > 2) counts.back() = 0;
  return LeafIntervals(counts);
}

/// No call whose algorithm the table selects is refused, whatever it selects for its length.
TEST(Limits, WhatAutoSelectsFitsIntoATeamsRings) {
  constexpr std::size_t kPinned = std::size_t{64} << 20;  // a quarter of the least arena
  int selected_plans = 0;
  int shortened = 0;
  for (const int ranks : {2, 3, 7, 16, 33, 64, 100, 256, 257, 512, kRanksMost}) {
    for (const Topology& topology : shapes_of(ranks)) {
      std::vector<PlanRequest> requests = requests_on(topology);
      const LeafIntervals leaves = leaves_of(ranks);
      for (std::size_t i = 0, plain = requests.size(); i < plain; ++i) {
        const bool has_leaves = combines(requests[i].collective) && !is_prefix(requests[i].collective);
        if (ranks > 33 || requests[i].determinism == Determinism::run || !has_leaves) continue;
        requests.push_back(requests[i]);
        requests.back().leaves = &leaves;
      }
      for (const PlanRequest& request : requests) {
        if (request.leaves != nullptr && !is_served(request)) continue;
        if (!is_served(request)) {
          // The one collective that neither trees nor halvings serve in the canonical order.
          const bool is_known = request.collective == Collective::reduce_scatter && ranks > 256 &&
                                request.determinism == Determinism::canonical;
          EXPECT_TRUE(is_known) << text_of(request) << " is served by no row";
          expect_refused(request);
          continue;
        }
        const Widening widening = request.wide_wire ? Widening::fourfold : Widening::none;
        for (const bool several_nodes : {false, true}) {
          for (std::size_t bytes = 1; bytes <= std::size_t{1} << 30; bytes *= 4) {
            const Selected selected =
                select(TuneTable::built_in(), Forced{}, request, bytes, several_nodes, several_nodes ? 16384 : 0);
            for (const RingsOfTeam& rings :
                 {RingsOfTeam{}, RingsOfTeam{8}, RingsOfTeam{2, kPinned}, RingsOfTeam{2, kPinned, true}}) {
              const bool is_pinned = rings.memory_bytes == kPinned;
              // Larger teams need a larger arena.
              const int most = request.leaves != nullptr || rings.balances ? 16 : 256;
              if (is_pinned && ranks > most) continue;
              Selected fitting = selected;
              try {
                (void)fitting_plan(fitting, 0, 64, widening, rings.of(ranks, several_nodes));
              } catch (const Error& error) {
                ADD_FAILURE() << text_of(request) << ", " << bytes << " bytes, several nodes " << several_nodes << ", "
                              << rings.channels << " channels, " << rings.memory_bytes << " bytes: " << error.what();
              }
              if (rings.channels != 2 || is_pinned || request.leaves != nullptr) continue;
              shortened += fitting.request.tuning.segment_bytes < selected.request.tuning.segment_bytes ? 1 : 0;
              ++selected_plans;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(selected_plans, 5000);
  EXPECT_GT(shortened, 0);
  // Nearly all because elements travel as four times their bytes.
  EXPECT_LT(shortened, selected_plans / 15) << "tables should name segments that fit";
}

/// A plan that cannot fit is refused with the figures that matter.
TEST(Limits, APlanThatCannotFitIsRefused) {
  PlanRequest request;
  request.collective = Collective::allreduce;
  request.topology = Topology::node(4);
  Selected selected =
      select(TuneTable::built_in(), Forced{.algorithm = "node"}, request, std::size_t{1} << 20, false, 0);
  RingSizes rings = ring_sizes(4, 2);
  rings.outbox_bytes = 4096;
  try {
    (void)fitting_plan(selected, 0, 1024, Widening::none, rings);
    ADD_FAILURE() << "it fits";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::no_resource);
    EXPECT_NE(std::string(error.what()).find("the plan of node does not fit into the team's standing rings, with "),
              std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("an outbox of 4096 bytes; make TORII_SLOTS"), std::string::npos);
  }
  rings.rings = 1;
  try {
    (void)fitting_plan(selected, 0, 1024, Widening::none, rings);
    ADD_FAILURE() << "it fits";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::internal);
    EXPECT_STREQ(error.what(), "node has 2 streams between two ranks, which have rings for 1");
  }
}

/// The plans of one request, made when they are asked for.
class Plans {
 public:
  Plans(const Algorithm& algorithm, const PlanRequest& request) : algorithm_(algorithm), request_(request) {}
  const Plan& of(int rank) {
    const auto found = plans_.find(rank);
    return found != plans_.end() ? found->second : plans_.emplace(rank, algorithm_.plan(request_, rank)).first->second;
  }

 private:
  const Algorithm& algorithm_;
  const PlanRequest& request_;
  std::map<int, Plan> plans_;
};

/// Marks the messages that the ends of one side of a plan's flows use. False where one is used twice, or is none.
template <typename Ends>
bool use_each_once(const Plan& plan, const std::vector<Stream>& streams, Ends Flow::*side) {
  std::vector<std::vector<bool>> used;
  for (const Stream& stream : streams) used.emplace_back(static_cast<std::size_t>(stream.messages_per_segment));
  for (const Lane& lane : plan.lanes) {
    for (const Flow& flow : lane.flows) {
      for (const StreamEnd& end : flow.*side) {
        if (end.stream == kOwn) continue;
        if (end.stream >= used.size()) return false;
        std::vector<bool>& messages = used[end.stream];
        for (int visit = 0; visit < flow.walk.count; ++visit) {
          const auto message = static_cast<std::size_t>(end.position + visit);
          if (message >= messages.size() || messages[message]) return false;
          messages[message] = true;
        }
      }
    }
  }
  return std::ranges::all_of(used,
                             [](const std::vector<bool>& all) { return std::ranges::find(all, false) == all.end(); });
}

/// Whether the stream has its other end, of equal values, in the peer's plan.
bool meets(const Stream& stream, int rank, const std::vector<Stream>& others) {
  return std::ranges::any_of(others, [&](Stream other) {
    if (other.peer != rank || other.tag != stream.tag) return false;
    other.peer = stream.peer;
    return other == stream;
  });
}

void check_plan(Plans& plans, int rank) {
  const Plan& plan = plans.of(rank);
  EXPECT_LE(plan.in.size(), static_cast<std::size_t>(plan.in_streams_max));
  EXPECT_LE(plan.out.size(), static_cast<std::size_t>(plan.out_streams_max));
  EXPECT_TRUE(use_each_once(plan, plan.in, &Flow::sources)) << "what comes, rank " << rank;
  EXPECT_TRUE(use_each_once(plan, plan.out, &Flow::targets)) << "what goes, rank " << rank;
  for (std::size_t i = 0; i < plan.in.size(); i += 1 + plan.in.size() / 4) {
    EXPECT_TRUE(meets(plan.in[i], rank, plans.of(plan.in[i].peer).out)) << "in-stream " << i << " of rank " << rank;
  }
  for (std::size_t i = 0; i < plan.out.size(); i += 1 + plan.out.size() / 4) {
    EXPECT_TRUE(meets(plan.out[i], rank, plans.of(plan.out[i].peer).in)) << "out-stream " << i << " of rank " << rank;
  }
}

int steps_of(const Plan& plan) {
  int steps = 0;
  for (const Lane& lane : plan.lanes) {
    for (const Flow& flow : lane.flows) steps += flow.walk.count;
  }
  return plan.exchange.exists() ? plan.ranks : steps;
}

/// Plans of few steps are proved. The others, which grow with the square of the ranks, take minutes, so some of their
/// ranks are looked at: numbers of streams and messages that do not fit would show as messages used twice, or not at
/// all.
TEST(Limits, PlansOf1024RanksFitTogether) {
  constexpr int kStepsProved = 30;
  const int part = is_full() ? 1 : 5;
  int plans_seen = 0;
  int proofs = 0;
  for (const Topology& topology : shapes_of(kRanksMost)) {
    for (const PlanRequest& request : requests_on(topology)) {
      for (const Algorithm& algorithm : catalogue()) {
        if (!algorithm.why_not(request).empty()) continue;
        SCOPED_TRACE(std::string(algorithm.name) + ", " + text_of(request));
        Plans plans(algorithm, request);
        for (const int rank : {0, 1, request.root, kRanksMost - 1}) check_plan(plans, rank);
        if (plans_seen % part == 0 && steps_of(plans.of(1)) <= kStepsProved) {
          const Verdict verdict = verify(algorithm, request);
          EXPECT_TRUE(verdict.ok()) << verdict.faults.front();
          ++proofs;
        }
        if (HasFailure()) return;
        ++plans_seen;
      }
    }
  }
  EXPECT_GT(plans_seen, 200);
  EXPECT_GT(proofs, 10);
}

ThreadTeam many_threads(int ranks) {
  ThreadTeam options;
  options.ranks = ranks;
  options.settings = "ARENA=8G\nTIMEOUT=100\nWAIT=yield\nENGINES=1";
  return options;
}

/// A map from x to a x + b. Compositions do not commute.
struct LimitMap {
  std::uint32_t a, b;
};
void compose_limit_maps(const void* left, const void* right, void* out, std::size_t count, void*) {
  for (std::size_t i = 0; i < count; ++i) {
    const LimitMap first = static_cast<const LimitMap*>(left)[i];
    const LimitMap second = static_cast<const LimitMap*>(right)[i];
    static_cast<LimitMap*>(out)[i] = {first.a * second.a, second.a * first.b + second.b};
  }
}
LimitMap limit_map_of(int rank) {
  const auto number = static_cast<std::uint32_t>(rank);
  return {2 * number + 3, number + 1};
}

/// A reduce has the order of ranks whatever their number; a reduce_scatter of so many is refused, and says why.
void expect_rank_order(torii_team* team) {
  const int rank = torii_team_rank(team);
  const int ranks = torii_team_ranks(team);
  const std::vector<LimitMap> input(static_cast<std::size_t>(ranks), limit_map_of(rank));
  LimitMap result = {};
  torii_call call = make_call(TORII_REDUCE, input.data(), &result, 1, TORII_U8, TORII_USER, ranks - 24);
  call.user = compose_limit_maps;
  call.user_bytes = sizeof(LimitMap);
  EXPECT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
  if (rank == ranks - 24) {
    LimitMap expected = limit_map_of(0);
    for (int other = 1; other < ranks; ++other) {
      const LimitMap next = limit_map_of(other);
      compose_limit_maps(&expected, &next, &expected, 1, nullptr);
    }
    EXPECT_EQ(result.a, expected.a);
    EXPECT_EQ(result.b, expected.b);
  }
  call.collective = TORII_REDUCE_SCATTER;
  EXPECT_EQ(torii_run(team, &call), TORII_UNSUPPORTED);
  const std::string text = torii_last_error();
  EXPECT_NE(text.find("node: node is for up to 256 ranks, there are 1024"), std::string::npos) << text;
  EXPECT_NE(text.find("an operation that does not commute runs at canonical"), std::string::npos) << text;
  call.commutes = 1;
  EXPECT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
}

TEST(Limits, ATeamOf1024RanksRuns) {
  run_as_threads(many_threads(kRanksMost), [](torii_context*, torii_team* team) {
    EXPECT_EQ(torii_barrier(team), TORII_OK) << torii_last_error();
    const std::int64_t own = torii_team_rank(team);
    std::int64_t sum = 0;
    EXPECT_EQ(torii_allreduce(team, &own, &sum, 1, TORII_I64, TORII_SUM), TORII_OK) << torii_last_error();
    EXPECT_EQ(sum, std::int64_t{kRanksMost} * (kRanksMost - 1) / 2);
    expect_rank_order(team);
  });
}

TEST(Limits, ATeamOf1025RanksIsRefused) {
  ThreadTeam options = many_threads(kRanksMost + 1);
  options.refusal = "1025 ranks; a team has at most 1024";
  run_as_threads(options, [](torii_context*, torii_team*) { ADD_FAILURE() << "the team was made"; });
}

#ifdef TORII_TEST_LIBFABRIC
/// What that means for a caller: seven nodes with the defaults, whose first choice of a segment is too long.
TEST(Limits, ACallWithDefaultsIsNotRefusedForStaging) {
  constexpr std::size_t kCount = std::size_t{1} << 19;
  ThreadTeam options;
  options.ranks = 7;
  options.topology = "torus:7";
  options.determinism = "canonical";
  options.settings = "ARENA=1G\nTIMEOUT=30\nENGINES=1";
  for (int rank = 0; rank < options.ranks; ++rank) options.nodes.push_back(rank);
  run_as_threads(options, [](torii_context*, torii_team* team) {
    std::vector<std::uint16_t> vector(kCount, 0x3c00);  // 1
    EXPECT_EQ(torii_allreduce(team, vector.data(), vector.data(), kCount, TORII_F16, TORII_SUM), TORII_OK)
        << torii_last_error();
    EXPECT_TRUE(std::ranges::all_of(vector, [](std::uint16_t value) { return value == 0x4700; })) << "7 is expected";
  });
}
#endif

}  // namespace
}  // namespace torii::tests
