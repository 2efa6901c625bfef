// SPDX-License-Identifier: Apache-2.0
// Every row of the catalogue: what it serves, that its plans fit together, that they are pure, and that its cost is the
// one its file names. The proofs are in test_verify_catalogue.cpp.
#include <gtest/gtest.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "collectives/drawing/draw.hpp"
#include "collectives/proof/verify.hpp"
#include "collectives/selection/catalogue.hpp"
#include "tests/collectives/proof/test_verify_plans.hpp"
#include "tests/support/places.hpp"

namespace torii::tests {
namespace {

PlanRequest request_on(const Topology& topology, Collective collective, Tuning tuning = {}) {
  PlanRequest request;
  request.collective = collective;
  request.topology = topology;
  request.tuning = tuning;
  return request;
}

std::string why_not(std::string_view name, const PlanRequest& request) {
  return find_algorithm(name)->why_not(request);
}

TEST(Algorithms, RowsHaveNamesAndSources) {
  std::set<std::string_view> names;
  for (const Algorithm& algorithm : catalogue()) {
    EXPECT_TRUE(names.insert(algorithm.name).second) << algorithm.name;
    EXPECT_EQ(algorithm.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string_view::npos);
    EXPECT_FALSE(algorithm.source.empty()) << algorithm.name;
    EXPECT_EQ(find_algorithm(algorithm.name), &algorithm);
  }
  EXPECT_EQ(find_algorithm("trinary"), nullptr);
  EXPECT_EQ(find_algorithm(""), nullptr);
}

/// The first table of docs/algorithms.md has all algorithms in its first column.
TEST(Algorithms, RowsAreInTheTableOfTheDocument) {
  std::ifstream document(std::filesystem::path(source_dir()) / "docs" / "algorithms.md");
  std::string line;
  while (std::getline(document, line) && !line.starts_with("|---")) continue;
  std::set<std::string> names;
  while (std::getline(document, line) && line.starts_with("| [")) {
    std::istringstream list(line.substr(3, line.find(']') - 3));
    for (std::string name; std::getline(list >> std::ws, name, ',');) names.insert(name);
  }
  EXPECT_FALSE(names.empty());
  for (const std::string_view name : algorithm_names()) {
    EXPECT_EQ(names.erase(std::string(name)), 1u) << name << " is not in the table of docs/algorithms.md";
  }
  EXPECT_TRUE(names.empty()) << *names.begin() << " is in the table of docs/algorithms.md, but not in the catalogue";
}

/// What each row is there for, on any number of ranks that is a power of two.
TEST(Algorithms, RowsServeTheirCollectives) {
  using enum Collective;
  const std::map<std::string_view, std::set<Collective>> serves = {
      {"trinaryx3", {barrier, broadcast, reduce, allreduce}},
      {"ring", {broadcast, reduce, allreduce, all_gather, reduce_scatter, scan, exscan}},
      {"bucket", {allreduce, all_gather, reduce_scatter}},
      {"recursive_doubling", {barrier, allreduce, all_gather, scan, exscan}},
      {"rabenseifner", {reduce, allreduce}},
      {"binomial", {barrier, broadcast, reduce, allreduce}},
      {"node", {barrier, broadcast, reduce, allreduce, all_gather, reduce_scatter, scatter, gather, scan, exscan}},
      {"direct", {alltoall, scatter, gather}},
      {"a2a", {alltoall}},
      {"a2and", {alltoall}},
      {"a2at_printed", {alltoall}},
      {"a2at", {alltoall}},
      {"swing", {allreduce}},
      {"scheduled", {broadcast, reduce}},
      {"chain", {broadcast, reduce}},
      {"neighbor_exchange", {all_gather}},
  };
  for (const int ranks : {1, 2, 4, 8}) {
    for (const auto& [name, collectives] : serves) {
      for (const Collective collective : kCollectives) {
        const std::string reason = why_not(name, request_on(Topology::node(ranks), collective));
        EXPECT_EQ(reason.empty(), collectives.contains(collective))
            << name << " " << torii::name(collective) << " on " << ranks << " ranks: " << reason;
      }
    }
  }
}

/// Both ends of all streams, as (sender, receiver, tag) to what must be equal.
using Ends = std::map<std::tuple<int, int, int>, Stream>;

void expect_streams_match(const std::vector<Plan>& plans) {
  Ends sent;
  Ends received;
  for (const Plan& plan : plans) {
    for (Stream stream : plan.out) {
      const std::tuple key(plan.rank, stream.peer, stream.tag);
      stream.peer = 0;
      ASSERT_TRUE(sent.emplace(key, stream).second) << "two streams with one tag";
    }
    for (Stream stream : plan.in) {
      const std::tuple key(stream.peer, plan.rank, stream.tag);
      stream.peer = 0;
      ASSERT_TRUE(received.emplace(key, stream).second) << "two streams with one tag";
    }
    ASSERT_LE(static_cast<int>(plan.in.size()), plan.in_streams_max);
    ASSERT_LE(static_cast<int>(plan.out.size()), plan.out_streams_max);
    ASSERT_EQ(plan.in_streams_max, plans[0].in_streams_max);
    ASSERT_EQ(plan.out_streams_max, plans[0].out_streams_max);
    ASSERT_EQ(plan.blocks, plans[0].blocks);
  }
  ASSERT_EQ(sent, received);
}

/// Every message of a segment is produced once and consumed once at this rank.
void expect_messages_used_once(const Plan& plan) {
  std::vector<std::set<int>> consumed(plan.in.size());
  std::vector<std::set<int>> produced(plan.out.size());
  for (const Lane& lane : plan.lanes) {
    ASSERT_FALSE(lane.flows.empty());
    for (const Flow& flow : lane.flows) {
      ASSERT_FALSE(flow.label.empty());
      for (int visit = 0; visit < flow.walk.count; ++visit) {
        ASSERT_LT(flow.walk.block(visit), plan.blocks);
        for (const StreamEnd& end : flow.sources) {
          if (end.stream == kOwn) continue;
          ASSERT_TRUE(consumed.at(end.stream).insert(end.position + visit).second);
        }
        for (const StreamEnd& end : flow.targets) {
          ASSERT_TRUE(produced.at(end.stream).insert(end.position + visit).second);
        }
      }
    }
  }
  const auto expect_all = [](const std::vector<Stream>& streams, const std::vector<std::set<int>>& used) {
    for (std::size_t i = 0; i < streams.size(); ++i) {
      ASSERT_EQ(static_cast<int>(used[i].size()), streams[i].messages_per_segment);
      ASSERT_EQ(*used[i].begin(), 0);
      ASSERT_EQ(*used[i].rbegin(), streams[i].messages_per_segment - 1);
    }
  };
  expect_all(plan.in, consumed);
  expect_all(plan.out, produced);
}

TEST(Algorithms, PlansFitTogether) {
  for (const Algorithm& algorithm : catalogue()) {
    for (int ranks = 1; ranks <= 17; ++ranks) {
      for (const Tuning& tuning : {Tuning{}, Tuning{4096, 2, 1, true}, Tuning{4096, 1, 3, false}}) {
        for (const PlanRequest& request : requests_on(Topology::node(ranks), tuning)) {
          if (!algorithm.why_not(request).empty()) continue;
          SCOPED_TRACE(std::string(algorithm.name) + " " + describe(request));
          const std::vector<Plan> plans = plan_all(algorithm, request);
          expect_streams_match(plans);
          for (const Plan& plan : plans) {
            ASSERT_EQ(plan.rank, &plan - plans.data());
            expect_messages_used_once(plan);
          }
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Algorithms, PlansArePure) {
  for (const Algorithm& algorithm : catalogue()) {
    for (const PlanRequest& request : requests_on(Topology::torus({3, 2, 2}), Tuning{})) {
      if (!algorithm.why_not(request).empty()) continue;
      const std::string forwards = draw_text(request, plan_all(algorithm, request));
      std::vector<Plan> plans(12);
      for (int rank = 11; rank >= 0; --rank) plans[static_cast<std::size_t>(rank)] = algorithm.plan(request, rank);
      ASSERT_EQ(draw_text(request, plans), forwards) << algorithm.name << " " << describe(request);
    }
  }
}

TEST(Algorithms, RefusalsSayWhatIsWrong) {
  for (const Algorithm& algorithm : catalogue()) {
    for (const Collective collective : kCollectives) {
      const PlanRequest good = request_on(Topology::node(4), collective);
      if (!algorithm.why_not(good).empty()) continue;
      const auto expect_reason = [&](const PlanRequest& request, const std::string& part) {
        const std::string reason = algorithm.why_not(request);
        EXPECT_NE(reason.find(part), std::string::npos) << algorithm.name << " " << describe(request) << ": " << reason;
      };
      PlanRequest bad = good;
      bad.root = 4;
      expect_reason(bad, "4");
      bad.root = -1;
      expect_reason(bad, "-1");
      bad = good;
      bad.tuning.slots = 0;
      expect_reason(bad, "slots");
      bad = good;
      bad.tuning.window = 0;
      expect_reason(bad, "window");
    }
  }
  EXPECT_NE(why_not("rabenseifner", request_on(Topology::node(4), Collective::all_gather)).find("all_gather"),
            std::string::npos);
  EXPECT_NE(why_not("recursive_doubling", request_on(Topology::node(65537), Collective::all_gather))
                .find("all_gather is for up to 65536 ranks, there are 65537; use ring"),
            std::string::npos);
  EXPECT_EQ(why_not("swing", request_on(Topology::node(512), Collective::allreduce)), "");
  EXPECT_NE(why_not("swing", request_on(Topology::torus({19, 27, 1}), Collective::allreduce))
                .find("swing is for up to 512 ranks, there are 513; bucket, trinaryx3 and ring do more"),
            std::string::npos);
  EXPECT_NE(why_not("ring", request_on(Topology::node(3), Collective::allreduce, {4096, 1, 1, false})).find("slots"),
            std::string::npos);
}

/// Which numbers of ranks bring each row's own order into the canonical one.
TEST(Algorithms, CanonicalIsServedWhereTheOrderIsCanonical) {
  const std::set<int> butterflies = {1, 2, 3, 4, 6, 7, 8, 12, 14, 15, 16, 24, 28, 30, 31, 32};
  for (int ranks = 1; ranks <= 32; ++ranks) {
    for (const bool wide : {false, true}) {
      PlanRequest request = request_on(Topology::node(ranks), Collective::allreduce);
      request.determinism = Determinism::canonical;
      request.wide_wire = wide;
      for (const char* name : {"recursive_doubling", "rabenseifner"}) {
        EXPECT_EQ(why_not(name, request).empty(), butterflies.contains(ranks)) << name << " " << ranks;
      }
      for (const char* name : {"node", "binomial"}) EXPECT_EQ(why_not(name, request), "") << name << " " << ranks;
      if (ranks == 1) continue;
      for (const char* name : {"ring", "bucket", "trinaryx3", "swing"})
        EXPECT_NE(why_not(name, request), "") << name << " " << ranks;
    }
  }
}

/// Messages of one segment that go to other ranks.
int messages_sent(const Plan& plan) {
  int messages = 0;
  for (const Stream& stream : plan.out) {
    if (stream.peer != plan.rank) messages += stream.messages_per_segment;
  }
  return messages;
}

TEST(Algorithms, CostsAreThoseOfTheHeaders) {
  for (const int ranks : {2, 4, 8, 16}) {
    const int log2 = std::countr_zero(static_cast<unsigned>(ranks));
    struct Row {
      const char* name;
      Collective collective;
      int steps;
      int messages;  ///< sent by every rank per segment
      int blocks;
    };
    using enum Collective;
    const Row rows[] = {
        {"ring", allreduce, 2 * (ranks - 1), 2 * (ranks - 1), ranks},
        {"ring", all_gather, ranks - 1, ranks - 1, ranks},
        {"ring", reduce_scatter, ranks - 1, ranks - 1, ranks},
        {"neighbor_exchange", all_gather, ranks / 2, ranks - 1, ranks},
        {"recursive_doubling", barrier, log2, log2, 1},
        {"recursive_doubling", allreduce, log2, log2, 1},
        {"recursive_doubling", all_gather, log2, ranks - 1, ranks},
        {"rabenseifner", allreduce, 2 * log2, 2 * (ranks - 1), ranks},
        {"swing", allreduce, 2 * log2, 2 * (ranks - 1), ranks},
        {"node", allreduce, 2, 2 * (ranks - 1), ranks},
    };
    for (const Row& row : rows) {
      const Algorithm& algorithm = *find_algorithm(row.name);
      const PlanRequest request = request_on(Topology::node(ranks), row.collective);
      const std::vector<Plan> plans = plan_all(algorithm, request);
      EXPECT_EQ(verify(algorithm, request).height, row.steps) << row.name << " " << describe(request);
      for (const Plan& plan : plans) {
        ASSERT_EQ(messages_sent(plan), row.messages) << row.name << " " << describe(request);
        ASSERT_EQ(plan.blocks, row.blocks) << row.name << " " << describe(request);
      }
    }
  }
}

/// The all_gather of any number of ranks: the logarithm of messages, rounded up, and each block once. A block from r
/// ranks ahead comes in as many hops as r has binary ones.
TEST(Algorithms, GathersOfAnyNumberOfRanksSendTheLogarithmOfMessages) {
  const Algorithm& algorithm = *find_algorithm("recursive_doubling");
  for (const int ranks : {3, 5, 6, 7, 9, 12, 16, 17, 31, 32, 33}) {
    for (const int slots : {1, 3}) {
      const PlanRequest request = request_on(Topology::node(ranks), Collective::all_gather, {4096, slots, 2, false});
      const Verdict verdict = verify(algorithm, request);
      ASSERT_TRUE(verdict.ok()) << ranks << ": " << verdict.faults.front();
      int hops = 0;
      for (unsigned ahead = 1; ahead < static_cast<unsigned>(ranks); ++ahead) {
        hops = std::max(hops, std::popcount(ahead));
      }
      EXPECT_EQ(verdict.height, hops) << ranks;
      for (const Plan& plan : plan_all(algorithm, request)) {
        EXPECT_EQ(plan.out.size(), static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(ranks - 1)))) << ranks;
        for (const Stream& stream : plan.out) EXPECT_EQ(stream.bundle, stream.messages_per_segment) << ranks;
        ASSERT_EQ(messages_sent(plan), ranks - 1) << ranks;
      }
    }
  }
}

/// The paper's distances, and what they are for: on a ring of 16 the busiest link carries less than by halving.
TEST(Algorithms, SwingPartnersStayNear) {
  const PlanRequest request = request_on(Topology::torus({16, 1, 1}, {true, true, true}, 1), Collective::allreduce);
  const Plan plan = find_algorithm("swing")->plan(request, 0);
  std::vector<int> peers;  // of the first part's reduction
  for (const Lane& lane : plan.lanes) {
    if (peers.size() < 4) peers.push_back(plan.out[lane.flows[0].targets[0].stream].peer);
  }
  EXPECT_EQ(peers, (std::vector<int>{1, 15, 3, 11}));
  const auto load = [&](const char* name) {
    const Verdict verdict = verify(*find_algorithm(name), request);
    EXPECT_TRUE(verdict.ok()) << verdict.faults.front();
    return verdict.busiest_link_messages / find_algorithm(name)->plan(request, 0).blocks;
  };
  const double swung = load("swing");
  EXPECT_LT(swung, 0.8 * load("rabenseifner"));
  EXPECT_LT(swung, load("ring"));
}

TEST(Algorithms, RingLoadsEveryLinkOfARingEqually) {
  for (const int ranks : {3, 5, 8}) {
    const Verdict verdict =
        verify(*find_algorithm("ring"),
               request_on(Topology::torus({ranks, 1, 1}, {true, true, true}, 1), Collective::allreduce));
    ASSERT_TRUE(verdict.ok()) << verdict.faults.front();
    EXPECT_EQ(verdict.busiest_link_messages, 2 * (ranks - 1));
    EXPECT_EQ(verdict.links_shared, 0);
  }
}

/// All lanes visit their blocks upwards, so one slot per stream is enough.
TEST(Algorithms, ButterfliesNeedOneSlot) {
  for (const int ranks : {2, 5, 8, 16, 23, 32}) {
    for (const char* name : {"recursive_doubling", "rabenseifner"}) {
      for (const Collective collective : {Collective::reduce, Collective::allreduce, Collective::all_gather}) {
        for (const int window : {1, 4}) {
          const PlanRequest request = request_on(Topology::node(ranks), collective, {4096, 1, window, false});
          if (!why_not(name, request).empty()) continue;
          const Verdict verdict = verify(*find_algorithm(name), request);
          ASSERT_TRUE(verdict.ok()) << name << " " << describe(request) << ": " << verdict.faults.front();
        }
      }
    }
  }
}

}  // namespace
}  // namespace torii::tests
