// SPDX-License-Identifier: Apache-2.0
// Which streams share one copy of their payload, which messages a credit, which engines serve a pair of ranks and share
// its messages, and what a sender is charged for its readers.
#include "runtime/execution/installed_plan.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tests/runtime/execution/ring_team.hpp"

namespace torii {
namespace {

using tests::apart;
using tests::plan_of;
using tests::RingTeam;

TEST(Signals, DifferFromThoseOfAllOtherNumbers) {
  constexpr std::uint64_t kRound = std::uint64_t{1} << 32;
  EXPECT_NE(signal_word(5, 7), signal_word(5, 7 + kRound));
  EXPECT_NE(signal_word(5, 7), signal_word(5, 8));
  EXPECT_NE(signal_word(5, 7), signal_word(6, 7));
}

TEST(GroupLeaders, ABroadcastIsOneGroup) {
  const Plan root = plan_of("node", Collective::broadcast, Topology::node(5), 0);
  EXPECT_EQ(group_leaders(root, Nodes(5)), (std::vector<int>{0, 0, 0, 0}));
  EXPECT_TRUE(group_leaders(plan_of("node", Collective::broadcast, Topology::node(5), 3), Nodes(5)).empty());
}

TEST(GroupLeaders, OperandsForDifferentRanksAreAloneAndFinishedBlocksAGroup) {
  const Plan plan = plan_of("node", Collective::allreduce, Topology::node(4), 1);
  ASSERT_EQ(plan.out.size(), 6U);
  const std::vector<int> leaders = group_leaders(plan, Nodes(4));
  int read = 0;
  int written = 0;
  for (std::size_t i = 0; i < plan.out.size(); ++i) {
    if (plan.out[i].delivery == Delivery::read_in_place) {
      ++read;
      EXPECT_EQ(leaders[i], -1);
    } else {
      ++written;
      EXPECT_GE(leaders[i], 0);
      EXPECT_EQ(leaders[static_cast<std::size_t>(leaders[i])], leaders[i]) << "a leader leads itself";
    }
  }
  EXPECT_EQ(read, 3);
  EXPECT_EQ(written, 3);
}

TEST(GroupLeaders, ARingHasNone) {
  for (const int leader : group_leaders(plan_of("ring", Collective::allreduce, Topology::node(4), 2), Nodes(4))) {
    EXPECT_EQ(leader, -1);
  }
}

/// One flow with the targets `ends`.
Plan one_flow(std::vector<Stream> out, std::vector<StreamEnd> ends) {
  Plan plan;
  plan.out = std::move(out);
  plan.lanes.resize(1);
  plan.lanes[0].flows.push_back({.sources = {{}}, .targets = std::move(ends)});
  return plan;
}

TEST(GroupLeaders, OnlyEqualStreamsShare) {
  const Stream plain = {.peer = 1};
  Stream wide = plain;
  wide.wide = true;
  Stream twice = plain;
  twice.messages_per_segment = 2;
  Stream read = plain;
  read.delivery = Delivery::read_in_place;
  Stream own = plain;
  own.delivery = Delivery::local;
  for (const Stream& other : {wide, twice, read}) {
    EXPECT_EQ(group_leaders(one_flow({plain, other}, {{0, 0}, {1, 0}}), Nodes(3)), (std::vector<int>{-1, -1}));
    EXPECT_EQ(group_leaders(one_flow({plain, other, plain}, {{0, 0}, {1, 0}, {2, 0}}), Nodes(3)),
              (std::vector<int>{0, -1, 0}));
  }
  EXPECT_EQ(group_leaders(one_flow({own, own}, {{0, 0}, {1, 0}}), Nodes(3)), (std::vector<int>{-1, -1}));
  EXPECT_EQ(group_leaders(one_flow({twice, twice}, {{0, 0}, {1, 1}}), Nodes(3)), (std::vector<int>{-1, -1}))
      << "their messages stand in different slots";
}

TEST(GroupLeaders, PeersOfOtherNodesAreAGroupOfTheirOwn) {
  const Plan root = plan_of("node", Collective::broadcast, Topology::node(5), 0);
  // Targets in order: ranks 1, 2, 3, 4.
  EXPECT_EQ(group_leaders(root, {0, 1, 0, 2, 0}), (std::vector<int>{0, 1, 0, 1}));
}

TEST(GroupLeaders, AStreamOfTwoFlowsIsAlone) {
  Plan plan = one_flow({{.peer = 1}, {.peer = 2}}, {{0, 0}, {1, 0}});
  plan.lanes[0].flows.push_back({.sources = {{}}, .targets = {{1, 1}}});
  EXPECT_EQ(group_leaders(plan, Nodes(3)), (std::vector<int>{-1, -1}));
}

/// A stream over two engines, of which the second takes ten times as long, and its credits.
class SharedStream {
 public:
  /// A call of 32 messages, all drawn at once; the credits come as the engines carry them, but only those of the first
  /// half are looked at in the call. Returns how many the slow engine drew.
  int call(std::int64_t pause_ns) {
    now_ns_ += pause_ns;
    share_.resume();
    share_.look(bytes(), now_ns_);
    std::vector<std::int64_t> comes_ns(kSlots);
    std::int64_t through_ns[] = {now_ns_, now_ns_};
    int slow = 0;
    for (std::uint64_t slot = 0; slot < kSlots; ++slot) {
      const int engine = share_.next();
      share_.sent(engine, number_ + slot, now_ns_);
      slow += engine;
      comes_ns[slot] = through_ns[engine] += engine == 0 ? 1'000'000 : 10'000'000;
    }
    const std::int64_t leaves_ns = now_ns_ + 16'000'000;
    for (; now_ns_ < leaves_ns; now_ns_ += 100'000) {
      for (std::uint64_t slot = 0; slot < kSlots; ++slot) {
        if (comes_ns[slot] <= now_ns_) words_[slot] = number_ + slot + 1;
      }
      share_.look(bytes(), now_ns_);
    }
    for (std::uint64_t slot = 0; slot < kSlots; ++slot) words_[slot] = number_ + slot + 1;
    number_ += kSlots;
    return slow;
  }

 private:
  static constexpr std::uint64_t kSlots = EngineBalancer::kSlotsLeast;
  const std::byte* bytes() const { return reinterpret_cast<const std::byte*>(words_.data()); }

  EngineBalancer share_{static_cast<int>(kSlots), 2};
  std::vector<std::uint64_t> words_ = std::vector<std::uint64_t>(kSlots);
  std::uint64_t number_ = 0;
  std::int64_t now_ns_ = 1'000'000'000;
};

TEST(EngineBalancer, TheTimeBetweenCallsIsNotTheEngines) {
  SharedStream stream;
  for (int call = 0; call < 5; ++call) stream.call(0);
  for (int call = 0; call < 5; ++call) {
    EXPECT_LE(stream.call(10'000'000'000), 5) << "32 messages over 11 parts give the slow engine three";
  }
}

TEST(EngineBalancer, AnEngineHasRoomForOneMoreWithEachCredit) {
  constexpr std::int64_t kMs = 1'000'000;
  EngineBalancer balancer(EngineBalancer::kSlotsLeast, 2);
  std::vector<std::uint64_t> words(EngineBalancer::kSlotsLeast);
  const auto* const credits = reinterpret_cast<const std::byte*>(words.data());
  std::uint64_t message = 0;
  const auto fill = [&](std::int64_t now_ns) {
    std::uint64_t sent = 0;
    for (; balancer.has_room(); ++sent) balancer.sent(balancer.next(), message++, now_ns);
    return sent;
  };
  EXPECT_EQ(fill(kMs), 4U);
  EXPECT_FALSE(balancer.has_waited(50 * kMs));
  EXPECT_TRUE(balancer.has_waited(52 * kMs)) << "no credit for 50 ms: a message goes without room";
  words[0] = 1;
  balancer.look(credits, 60 * kMs);
  EXPECT_FALSE(balancer.has_waited(100 * kMs)) << "a credit has come";
  EXPECT_EQ(fill(60 * kMs), 2U) << "for the one that is back, and one more";
  balancer.resume();
  words[1] = 2;
  balancer.look(credits, 70 * kMs);
  EXPECT_EQ(fill(70 * kMs), 2U) << "a credit between calls is not timed, but counts";
}

/// By pair of ranks, the engines of the one on its way to the other: first and count.
using Deal = std::map<std::pair<int, int>, std::pair<int, int>>;

Deal deal(const Topology& topology, int engines, int rails, bool polling_is_costly = false) {
  Deal deal;
  const RingTeam team(apart(topology.ranks(), engines, rails, polling_is_costly), "trinaryx3", Collective::allreduce,
                      topology);
  for (int rank = 0; rank < team.ranks(); ++rank) {
    const auto note = [&](const RingPlace& place) {
      if (!place.remote) return;
      const std::pair<int, int> engines_of_pair = {place.engines.first, place.engines.count};
      const auto [at, fresh] = deal.try_emplace({rank, place.peer}, engines_of_pair);
      EXPECT_EQ(at->second, engines_of_pair) << "all streams of a pair go by the same engines";
    };
    for (const InstalledIn& in : team.plan(rank).in) note(in.ring.place());
    for (const InstalledOut& out : team.plan(rank).out) note(out.ring.place());
  }
  return deal;
}

TEST(Engines, APairMeetsOnOneOfEachRail) {
  for (const int rails : {1, 2, 3, 4}) {
    const Deal pairs = deal(Topology::parse("torus:4x4", 16), 4, rails);
    ASSERT_FALSE(pairs.empty());
    std::set<int> used;
    for (const auto& [pair, engines] : pairs) {
      EXPECT_EQ(engines, pairs.at({pair.second, pair.first})) << pair.first << " and " << pair.second;
      EXPECT_GE(engines.second, rails) << "no rail lies idle between them";
      EXPECT_LE(engines.first + engines.second, 4);
      if (4 % rails == 0) {
        EXPECT_EQ(engines.second, rails);
      }
      for (int i = 0; i < engines.second; ++i) used.insert(engines.first + i);
    }
    EXPECT_EQ(used.size(), 4U) << rails << " rails";
  }
}

TEST(Engines, OfCrowdedRanksTheFirstOfEachRailServes) {
  for (const int rails : {1, 2}) {
    const Deal pairs = deal(Topology::parse("torus:4x4", 16), 4, rails, true);
    ASSERT_FALSE(pairs.empty());
    for (const auto& [pair, engines] : pairs) {
      EXPECT_EQ(engines, std::pair(0, rails)) << pair.first << " and " << pair.second;
    }
  }
}

TEST(Engines, BetweenTwoNodesAllServe) {
  for (const bool polling_is_costly : {false, true}) {
    for (const int rails : {1, 2, 4}) {
      const Deal pairs = deal(Topology::parse("torus:2", 2), 4, rails, polling_is_costly);
      ASSERT_FALSE(pairs.empty());
      for (const auto& [pair, engines] : pairs) EXPECT_EQ(engines, (std::pair<int, int>{0, 4})) << rails << " rails";
    }
  }
}

/// Engines share the messages of a stream where each of these has a credit and enough of them may be under way.
TEST(Engines, BalanceStreamsWhoseMessagesHaveCreditsOfTheirOwn) {
  const Topology topology = Topology::parse("torus:3", 3);
  const auto balancers = [&](tests::Machines machines, bool balances) {
    // For short messages rings have as many entries as engines need, whether these have credits of their own or not.
    const RingTeam team(std::move(machines), "trinaryx3", Collective::allreduce, topology,
                        {.balances = balances, .message_bytes = 1024});
    EXPECT_GE(team.rings(0).sizes().of(RingKind::short_flow).entries, EngineBalancer::kSlotsLeast);
    const InstalledPlan& plan = team.plan(0);
    for (const InstalledOut& out : plan.out) {
      EXPECT_EQ(out.ring.place().engines.balancer != nullptr, !plan.balancers.empty() && out.ring.remote());
    }
    for (const InstalledIn& in : plan.in) {
      // A credit goes by the engine that has least to do on the way to the same rank.
      const bool is_known = std::ranges::any_of(plan.out, [&](const InstalledOut& out) {
        return out.ring.peer() == in.ring.peer() &&
               out.ring.place().engines.balancer == in.ring.place().engines.balancer;
      });
      EXPECT_TRUE(is_known || in.ring.place().engines.balancer == nullptr);
    }
    return plan.balancers.size();
  };
  EXPECT_GT(balancers(apart(3), true), 1U);
  EXPECT_EQ(balancers(apart(3), false), 0U) << "several messages share a credit";
  EXPECT_EQ(balancers(apart(3, 1), true), 0U) << "there is one engine";
  EXPECT_EQ(balancers(tests::together(3), true), 0U) << "nothing is put";
  tests::Machines dealt = apart(3);
  dealt.deals_engines = true;
  EXPECT_EQ(balancers(dealt, true), 0U) << "the transport does it";
}

/// A choice after many messages, where the sender saves 9 ns a line by stores past the caches.
StoreChoice::Way way_where_9_ns_are_saved(StoreChoice choice) {
  constexpr std::size_t kBytes = 64 * 512;
  for (int message = 0; message < 1000; ++message) {
    const StoreChoice::Turn turn = choice.next(false);
    const int line_ns = turn.way == StoreChoice::Way::cached ? 11 : 2;
    if (turn.timed) choice.record(turn.way, line_ns * 512, kBytes);
  }
  return choice.best();
}

TEST(Stores, ARankThatOnlySendsIsChargedLessForItsReaders) {
  const Topology topology = Topology::node(4);
  const auto way = [&](std::string_view algorithm, Collective collective, int rank) {
    const RingTeam team(apart(4), algorithm, collective, topology);
    return way_where_9_ns_are_saved(team.plan(rank).stores.at(0)->slots.of(4096));
  };
  EXPECT_EQ(way("chain", Collective::broadcast, 0), StoreChoice::Way::non_temporal) << "the root only sends";
  EXPECT_EQ(way("chain", Collective::broadcast, 1), StoreChoice::Way::cached) << "it also receives";
  EXPECT_EQ(way("direct", Collective::alltoall, 0), StoreChoice::Way::cached) << "it takes what it sends";
  EXPECT_EQ(way("direct", Collective::scatter, 0), StoreChoice::Way::non_temporal) << "the root takes nothing";
}

TEST(Stores, PlansOfATeamLearnTogetherWhatIsAlike) {
  const Topology topology = Topology::node(4);
  const auto learnt = std::make_shared<LearntChoices>();
  const auto choices = [&](std::string_view algorithm, Collective collective, int rank) {
    return RingTeam(apart(4), algorithm, collective, topology, {.learnt = learnt}).plan(rank).stores.at(0);
  };
  StoreChoices* const forwards = choices("chain", Collective::broadcast, 1);
  EXPECT_EQ(choices("chain", Collective::broadcast, 2), forwards) << "it forwards, too";
  EXPECT_NE(choices("chain", Collective::broadcast, 0), forwards) << "the root sends what it has";
  EXPECT_NE(choices("chain", Collective::reduce, 1), forwards) << "a reduce folds";
  EXPECT_NE(choices("direct", Collective::alltoall, 1), choices("direct", Collective::scatter, 0)) << "one receives";
}

TEST(Engines, CreditsOfExchangesUseTheFirstOnly) {
  for (const int ranks : {2, 5}) {
    const RingTeam team(apart(ranks, 4, 2), "direct", Collective::alltoall, Topology::node(ranks));
    const std::vector<ExchangePeer>& peers = team.plan(0).exchange.peers;
    ASSERT_EQ(peers.size(), static_cast<std::size_t>(ranks - 1));
    for (const ExchangePeer& peer : peers) {
      EXPECT_EQ(std::pair(peer.in.ring.place().engines.first, peer.in.ring.place().engines.count), std::pair(0, 1))
          << "rank " << peer.rank;
    }
  }
}

}  // namespace
}  // namespace torii
