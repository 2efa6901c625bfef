// SPDX-License-Identifier: Apache-2.0
// The virtual network by itself: what one put takes, who waits for whom at engines, links and ports.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/base/status.hpp"
#include "runtime/fabric/words.hpp"
#include "transports/simulated/network.hpp"
#include "transports/simulated/simulated.hpp"

namespace torii::simulated {
namespace {

constexpr std::size_t kMicrosecondBytes = 5000;  // 1 us on a link of 5 GB/s
constexpr Time kMicrosecond = 1'000'000;
constexpr Time kAlpha = 1'500'000;
constexpr Time kOverhead = 200'000;

NetworkModel row_of(int nodes) {
  NetworkModel model;
  model.topology = Topology::torus({nodes, 1, 1}, {false, false, false}, 1);
  return model;
}

/// A network whose ranks all have one way to each peer, at lines of their own.
class Fixture {
 public:
  explicit Fixture(const NetworkModel& model, bool carries_data = false) : network(model, 4096, carries_data) {
    const int ranks = model.topology.ranks();
    for (int from = 0; from < ranks; ++from) {
      for (int to = 0; to < ranks; ++to) {
        if (to != from) network.add_way(from, to, line(from), line(from + 1), 0);
      }
    }
  }
  static std::uint64_t line(int from) { return static_cast<std::uint64_t>(from) * 2 * kLineBytes; }
  void put(int from, int to, std::size_t bytes = kMicrosecondBytes, std::uint64_t number = 1) {
    Put put;
    put.peer = to;
    put.bytes = bytes;
    put.signal_offset = line(from);
    put.target_offset = line(from) + kLineBytes;
    put.source = payload.data();
    put.signal = number;
    ASSERT_EQ(network.put(from, put), Status::ok);
  }
  /// When each signal is seen, in order of time: (time, receiver, signal).
  std::vector<std::array<Time, 3>> run() {
    std::vector<std::array<Time, 3>> seen;
    std::vector<int> woken;
    while (network.next_instant(woken)) {
      for (const int rank : woken) {
        for (int from = 0; from < network.model().topology.ranks(); ++from) {
          std::byte* const word = network.arena(rank) + line(from);
          if (load_word(word) == 0) continue;
          seen.push_back({network.now(), rank, static_cast<Time>(load_word(word))});
          store_word(word, 0);
        }
      }
    }
    return seen;
  }

  std::array<std::byte, 64> payload{};
  Network network;
};

using Seen = std::vector<std::array<Time, 3>>;

TEST(Network, OnePutTakesAlphaAndItsBytes) {
  Fixture fixture(row_of(2));
  fixture.put(0, 1);
  EXPECT_EQ(fixture.run(), (Seen{{kAlpha + kMicrosecond, 1, 1}}));
  EXPECT_EQ(fixture.network.link_bytes()[static_cast<std::size_t>(link_id(0, 0, 1))], kMicrosecondBytes);
  EXPECT_TRUE(fixture.network.drained(0));
}

TEST(Network, AWayOfManyLinksTakesNoLonger) {
  Fixture fixture(row_of(5));
  fixture.put(0, 4);
  EXPECT_EQ(fixture.run(), (Seen{{kAlpha + kMicrosecond, 4, 1}}));
}

TEST(Network, ALinkServesItsMessagesInTurn) {
  Fixture fixture(row_of(3));
  fixture.put(0, 2, kMicrosecondBytes, 1);
  fixture.put(1, 2, kMicrosecondBytes, 2);  // both need the link from 1 to 2; the head of the first is there at once
  EXPECT_EQ(fixture.run(), (Seen{{kAlpha + kMicrosecond, 2, 1}, {kAlpha + 2 * kMicrosecond, 2, 2}}));
}

TEST(Network, AnEngineIsBusyForItsBytesAndTheOverhead) {
  NetworkModel model = row_of(3);
  model.engines = 1;
  Fixture fixture(model);
  fixture.put(1, 0, kMicrosecondBytes, 1);
  fixture.put(1, 2, kMicrosecondBytes, 2);
  const Time second = kMicrosecond + kOverhead;
  EXPECT_EQ(fixture.run(), (Seen{{kAlpha + kMicrosecond, 0, 1}, {second + kAlpha + kMicrosecond, 2, 2}}));
}

TEST(Network, TwoEnginesUseTwoLinks) {
  NetworkModel model = row_of(3);
  model.engines = 2;
  Fixture fixture(model);
  fixture.put(1, 0, kMicrosecondBytes, 1);
  fixture.put(1, 2, kMicrosecondBytes, 2);
  EXPECT_EQ(fixture.run(), (Seen{{kAlpha + kMicrosecond, 0, 1}, {kAlpha + kMicrosecond, 2, 2}}));
}

TEST(Network, WhatWaitsForALinkKeepsNoEngine) {
  NetworkModel model = row_of(3);
  model.engines = 2;
  Fixture fixture(model);
  fixture.put(1, 0, kMicrosecondBytes, 1);
  fixture.put(1, 0, kMicrosecondBytes, 2);
  fixture.put(1, 2, kMicrosecondBytes, 3);
  EXPECT_EQ(fixture.run(), (Seen{{kAlpha + kMicrosecond, 0, 1},
                                 {kAlpha + kMicrosecond, 2, 3},
                                 {kAlpha + 2 * kMicrosecond + kOverhead, 0, 2}}));
}

TEST(Network, TheLowestMessageGoesFirst) {
  NetworkModel model = row_of(3);
  model.engines = 1;
  Fixture fixture(model);
  fixture.put(1, 0, kMicrosecondBytes, 9);
  fixture.put(1, 0, kMicrosecondBytes, 7);
  fixture.put(1, 2, kMicrosecondBytes, 4);
  const Seen seen = fixture.run();
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[0][2], 9) << "it found a free engine";
  EXPECT_EQ(seen[1][2], 4);
  EXPECT_EQ(seen[2][2], 7);
}

TEST(Network, PortsServeOneLinkAtATime) {
  NetworkModel model = row_of(3);
  model.ports = true;
  Fixture out(model);
  out.put(1, 0, kMicrosecondBytes, 1);
  out.put(1, 2, kMicrosecondBytes, 2);
  EXPECT_EQ(out.run()[1][0], kAlpha + 2 * kMicrosecond + kOverhead);
  Fixture in(model);
  in.put(0, 1, kMicrosecondBytes, 1);
  in.put(2, 1, kMicrosecondBytes, 2);
  EXPECT_EQ(in.run()[1][0], kAlpha + 2 * kMicrosecond);
}

TEST(Network, WordsTakeAlphaAndNothingElse) {
  Fixture fixture(row_of(2));
  fixture.put(0, 1);
  ASSERT_EQ(fixture.network.put_word(0, 1, Fixture::line(1), 5), Status::ok);
  EXPECT_EQ(fixture.run(), (Seen{{kAlpha, 1, 5}, {kAlpha + kMicrosecond, 1, 1}}));
}

TEST(Network, WhatIsPutWhileTheRankComputesLeavesAfterwards) {
  Fixture fixture(row_of(2));
  fixture.network.compute_until(0, 3 * kMicrosecond);
  EXPECT_TRUE(fixture.network.is_computing(0));
  fixture.put(0, 1);
  EXPECT_EQ(fixture.run(), (Seen{{4 * kMicrosecond + kAlpha, 1, 1}}));
}

TEST(Network, JitterIsBoundedAndBelongsToItsSeed) {
  NetworkModel model = row_of(2);
  model.jitter_us = 2;
  const auto arrival = [&](std::uint64_t seed) {
    model.seed = seed;
    Fixture fixture(model);
    fixture.put(0, 1);
    return fixture.run()[0][0] - kAlpha - kMicrosecond;
  };
  for (std::uint64_t seed = 1; seed < 50; ++seed) {
    EXPECT_GE(arrival(seed), 0);
    EXPECT_LE(arrival(seed), 2 * kMicrosecond);
  }
  EXPECT_EQ(arrival(3), arrival(3));
  EXPECT_NE(arrival(3), arrival(4));
}

TEST(Network, PayloadsAreThereWithTheirSignal) {
  Fixture fixture(row_of(2), true);
  fixture.payload.fill(std::byte{0x5a});
  fixture.put(0, 1, 64);
  std::vector<int> woken;
  const std::byte* const arrived = fixture.network.arena(1) + Fixture::line(0) + kLineBytes;
  EXPECT_EQ(arrived[63], std::byte{0});
  ASSERT_TRUE(fixture.network.next_instant(woken));
  EXPECT_EQ(std::memcmp(arrived, fixture.payload.data(), 64), 0);
}

/// The sender of a stream puts its next payload into the same line as soon as this one has left.
TEST(Network, CopiesAPayloadInsideTheLineAtOnce) {
  Fixture fixture(row_of(3), true);
  const auto put_value = [&](int to, std::byte value) {
    fixture.payload.fill(value);
    Put put;
    put.peer = to;
    put.bytes = kInlineBytes;
    put.signal_offset = Fixture::line(1);
    put.target_offset = Fixture::line(1) + sizeof(std::uint64_t);
    put.source = fixture.payload.data();
    put.signal = 1;
    ASSERT_EQ(fixture.network.put(1, put), Status::ok);
  };
  put_value(0, std::byte{5});
  put_value(2, std::byte{6});
  fixture.payload.fill(std::byte{7});
  EXPECT_EQ(fixture.run().size(), 2U);
  const std::uint64_t last = Fixture::line(1) + kLineBytes - 1;
  EXPECT_EQ(fixture.network.arena(0)[last], std::byte{5});
  EXPECT_EQ(fixture.network.arena(2)[last], std::byte{6});
}

TEST(Network, SaysWhereMemoryIsTooShort) {
  try {
    const Network network(row_of(4), std::size_t{1} << 46, true);
    FAIL() << "2^48 bytes are mapped";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::no_resource);
    EXPECT_NE(std::string(error.what()).find("bytes of entries and payloads for 4 ranks"), std::string::npos);
  }
}

TEST(Network, RefusesWhatBelongsToNoStream) {
  Fixture fixture(row_of(2));
  Put put;
  put.peer = 1;
  put.bytes = 8;
  put.signal_offset = Fixture::line(7);
  EXPECT_EQ(fixture.network.put(0, put), Status::transport);
  put.bytes = 0;  // a credit
  EXPECT_EQ(fixture.network.put(0, put), Status::ok);
  EXPECT_EQ(fixture.network.words(), 1U);
}

TEST(Network, ASwitchHasALinkEachWayForEachRank) {
  NetworkModel model;
  model.topology = Topology::node(4);
  Fixture fixture(model);
  fixture.put(0, 3, kMicrosecondBytes, 1);
  fixture.put(1, 2, kMicrosecondBytes, 2);  // no link in common
  fixture.put(2, 3, kMicrosecondBytes, 3);  // waits for the link to 3
  EXPECT_EQ(fixture.run(),
            (Seen{{kAlpha + kMicrosecond, 3, 1}, {kAlpha + kMicrosecond, 2, 2}, {kAlpha + 2 * kMicrosecond, 3, 3}}));
}

NetworkModel tree_of(const char* links) {
  NetworkModel model;
  const std::string text = std::string("node a comm\nnode b comm\nnode c comm\nnode s relay\n") + links;
  model.topology = Topology::of_tree(TreeTopology::parse(text, "a test"), "a test");
  return model;
}

/// 5000 bytes take 1 us over 5 GB/s, 2 us over 2.5.
TEST(Network, LinksOfATreeHaveTheirOwnRatesAndLatencies) {
  const NetworkModel model = tree_of(
      "link a s 5GB/s 5GB/s 3us 30us full\nlink b s 2.5GB/s 2.5GB/s 50us 500ns full\nlink c s 5GB/s 5GB/s 0ns 7us "
      "full\n");
  Fixture fixture(model);
  fixture.put(0, 1);
  ASSERT_EQ(fixture.network.put_word(1, 0, Fixture::line(2), 5), Status::ok);
  EXPECT_EQ(fixture.run(), (Seen{{kAlpha + 2 * kMicrosecond + 3'500'000, 1, 1}, {kAlpha + 80'000'000, 0, 5}}));
  Fixture slow_first(model);
  slow_first.put(1, 2);  // the slow link holds up the fast one behind it
  EXPECT_EQ(slow_first.run()[0][0], kAlpha + 2 * kMicrosecond + 57'000'000);
}

TEST(Network, AHalfDuplexLinkServesOneDirectionAtATime) {
  for (const bool half : {false, true}) {
    const std::string kind = half ? "half\n" : "full\n";
    const std::string links = "link a s 5GB/s 5GB/s 0ns 0ns " + kind + "link b s 5GB/s 5GB/s 0ns 0ns full\n" +
                              "link c s 5GB/s 5GB/s 0ns 0ns full\n";
    Fixture fixture(tree_of(links.c_str()));
    fixture.put(0, 1, kMicrosecondBytes, 1);
    fixture.put(2, 0, kMicrosecondBytes, 2);
    EXPECT_EQ(fixture.run().back()[0], kAlpha + (half ? 2 : 1) * kMicrosecond);
  }
}

TEST(Network, SharedLinksDivideTheirBandwidth) {
  NetworkModel model = row_of(3);
  // Both cross the link from 1 to 2; the second has half as much to move.
  for (const Sharing sharing : {Sharing::min, Sharing::maxmin}) {
    model.sharing = sharing;
    Fixture fixture(model);
    fixture.put(0, 2, kMicrosecondBytes, 1);
    fixture.put(1, 2, kMicrosecondBytes / 2, 2);
    EXPECT_EQ(fixture.run(), (Seen{{kAlpha + kMicrosecond, 2, 2}, {kAlpha + kMicrosecond + kMicrosecond / 2, 2, 1}}));
    EXPECT_EQ(fixture.network.link_bytes()[static_cast<std::size_t>(link_id(1, 0, 1))],
              kMicrosecondBytes + kMicrosecondBytes / 2);
  }
}

TEST(Network, WhatOneCannotUseOthersGetByMaxminAlone) {
  const auto last = [](Sharing sharing) {
    NetworkModel model = tree_of(
        "link a s 5GB/s 5GB/s 0ns 0ns full\nlink b s 5GB/s 1GB/s 0ns 0ns full\nlink c s 5GB/s 5GB/s 0ns 0ns full\n");
    model.sharing = sharing;
    Fixture fixture(model);
    fixture.put(0, 1, kMicrosecondBytes, 1);  // 1 GB/s at most
    fixture.put(0, 2, kMicrosecondBytes, 2);  // the rest of 5 GB/s, or half
    return fixture.run().front();
  };
  EXPECT_EQ(last(Sharing::maxmin), (std::array<Time, 3>{kAlpha + 1'250'000, 2, 2}));
  EXPECT_EQ(last(Sharing::min), (std::array<Time, 3>{kAlpha + 2 * kMicrosecond, 2, 2}));
}

TEST(Network, AnEngineThatSharesIsBusyUntilItsMessageIsOut) {
  NetworkModel model = row_of(3);
  model.engines = 1;
  model.sharing = Sharing::maxmin;
  Fixture fixture(model);
  fixture.put(1, 0, kMicrosecondBytes, 1);
  fixture.put(1, 2, kMicrosecondBytes, 2);
  fixture.put(1, 0, 0, 3);
  const Time second = kMicrosecond + kOverhead;
  EXPECT_EQ(fixture.run(),
            (Seen{{kAlpha + kMicrosecond, 0, 1}, {second + kAlpha + kMicrosecond, 2, 2}, {2 * second + kAlpha, 0, 3}}));
}

TEST(Network, RefusesSeveralRanksOnANode) {
  NetworkModel model;
  model.topology = Topology::torus({3, 1, 1}, {true, true, true}, 1, 2);
  try {
    Network network(model, 64, false);
    ADD_FAILURE() << "it has no way of carrying what stays within a node";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::unsupported);
    EXPECT_NE(std::string(error.what()).find(model.topology.text()), std::string::npos) << error.what();
  }
}

TEST(Simulated, MapsTheOwnArenaAlone) {
  Network network(row_of(2), 128, false);
  Simulated transport(network, 1);
  EXPECT_EQ(transport.mapped(1, 64), network.arena(1) + 64);
  EXPECT_EQ(transport.mapped(0, 0), nullptr);
  EXPECT_NE(transport.node(0), transport.node(1));
  EXPECT_EQ(transport.capabilities().engines, 4);
  EXPECT_TRUE(transport.alive(0));
}

}  // namespace
}  // namespace torii::simulated
