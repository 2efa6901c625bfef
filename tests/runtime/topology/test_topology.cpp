// SPDX-License-Identifier: Apache-2.0
// Topologies: coordinates and neighbours fit each other, the text form reads back, and each bad text gets its own
// reason.
#include <gtest/gtest.h>

#include <iterator>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/status.hpp"
#include "runtime/topology/topology.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

/// Tori, meshes and mixtures of all extents 1..4.
std::vector<Topology> shapes() {
  std::vector<Topology> result;
  for (int x = 1; x <= 4; ++x) {
    for (int y = 1; y <= 4; ++y) {
      for (int z = 1; z <= 4; ++z) {
        for (int wraps = 0; wraps < 8; ++wraps) {
          const std::array<bool, 3> wrapping = {(wraps & 1) != 0, (wraps & 2) != 0, (wraps & 4) != 0};
          result.push_back(Topology::torus({x, y, z}, wrapping));
          if (x + y + z < 9) result.push_back(Topology::torus({x, y, z}, wrapping, 3, 1 + (x + wraps) % 3));
        }
      }
    }
  }
  return result;
}

TEST(Topology, RanksAndCoordinatesAreOneToOne) {
  for (const Topology& topology : shapes()) {
    std::set<Coordinates> seen;
    for (int rank = 0; rank < topology.ranks(); ++rank) {
      const Coordinates at = topology.coordinates(rank);
      for (std::size_t d = 0; d < 3; ++d) {
        ASSERT_GE(at[d], 0);
        ASSERT_LT(at[d], topology.extents()[d]) << topology.text();
      }
      ASSERT_EQ(topology.rank(at), rank - rank % topology.per_node()) << topology.text();
      ASSERT_EQ(topology.of_nodes().rank(at), topology.node_of(rank)) << topology.text();
      seen.insert(at);
    }
    ASSERT_EQ(static_cast<int>(seen.size()), topology.nodes()) << topology.text();
    ASSERT_EQ(topology.nodes() * topology.per_node(), topology.ranks()) << topology.text();
  }
}

TEST(Topology, RankRunsAlongXFirst) {
  const Topology topology = Topology::torus({4, 3, 2});
  EXPECT_EQ(topology.rank({1, 0, 0}), 1);
  EXPECT_EQ(topology.rank({0, 1, 0}), 4);
  EXPECT_EQ(topology.rank({0, 0, 1}), 12);
  EXPECT_EQ(topology.rank({3, 2, 1}), 23);
}

TEST(Topology, NeighboursDifferByOneStepAndLeadBack) {
  for (const Topology& topology : shapes()) {
    for (int rank = 0; rank < topology.ranks(); ++rank) {
      for (int d = 0; d < 3; ++d) {
        const auto dimension = static_cast<std::size_t>(d);
        const int extent = topology.extents()[dimension];
        for (const int direction : {-1, 1}) {
          const int to = topology.coordinates(rank)[dimension] + direction;
          const int neighbour = topology.neighbour(rank, d, direction);
          const bool ends = extent == 1 || (!topology.wraps(d) && (to < 0 || to >= extent));
          ASSERT_EQ(neighbour == -1, ends) << topology.text() << " rank " << rank;
          if (ends) continue;
          Coordinates expected = topology.coordinates(rank);
          expected[dimension] = (to + extent) % extent;
          ASSERT_EQ(topology.coordinates(neighbour), expected) << topology.text() << " rank " << rank;
          ASSERT_EQ(neighbour % topology.per_node(), rank % topology.per_node()) << topology.text() << " rank " << rank;
          ASSERT_EQ(topology.neighbour(neighbour, d, -direction), rank) << topology.text() << " rank " << rank;
        }
      }
    }
  }
}

TEST(Topology, NodeHasNoNeighbours) {
  const Topology node = Topology::node(5);
  EXPECT_EQ(node.kind(), Topology::Kind::node);
  EXPECT_EQ(node.ranks(), 5);
  EXPECT_EQ(node.per_node(), 5);
  EXPECT_EQ(node.nodes(), 1);
  EXPECT_EQ(node.of_nodes().ranks(), 1);
  for (int d = 0; d < 3; ++d) EXPECT_EQ(node.neighbour(2, d, 1), -1);
}

TEST(Topology, TextReadsBack) {
  for (const Topology& topology : shapes()) {
    // A torus none of whose dimensions wraps is called a mesh; both texts name the same topology.
    EXPECT_EQ(Topology::parse(topology.text(), topology.ranks()), topology) << topology.text();
  }
  struct Sample {
    const char* text;
    int ranks;
  };
  for (const Sample& sample :
       {Sample{"torus:4x4x4", 64}, Sample{"torus:4x4x2m", 32}, Sample{"torus:2mx3", 6}, Sample{"mesh:8x8", 64},
        Sample{"mesh:7", 7}, Sample{"torus:3x3*2", 18}, Sample{"torus:4x2m*16", 128}, Sample{"mesh:5*3", 15},
        Sample{"torus:1*4", 4}, Sample{"torus:5", 5}, Sample{"node", 6}, Sample{"torus:4x3,ties", 12},
        Sample{"torus:2x4m*2,ties", 16}, Sample{"node:8*4", 32}, Sample{"node:2*2", 4}}) {
    const Topology topology = Topology::parse(sample.text, sample.ranks);
    EXPECT_EQ(topology.text(), sample.text);
    EXPECT_EQ(topology.ranks(), sample.ranks);
  }
}

TEST(Topology, TextSetsKindExtentsAndWraps) {
  const Topology torus = Topology::parse("torus:4x3x2m", 24);
  EXPECT_EQ(torus.kind(), Topology::Kind::torus);
  EXPECT_EQ(torus.dimensions(), 3);
  EXPECT_EQ(torus.extents(), (Coordinates{4, 3, 2}));
  EXPECT_TRUE(torus.wraps(0));
  EXPECT_TRUE(torus.wraps(1));
  EXPECT_FALSE(torus.wraps(2));
  const Topology pairs = Topology::parse("torus:3x3*2", 18);
  EXPECT_EQ(pairs.extents(), (Coordinates{3, 3, 1}));
  EXPECT_EQ(pairs.per_node(), 2);
  EXPECT_EQ(pairs.node_of(17), 8);
  EXPECT_EQ(pairs.coordinates(7), (Coordinates{0, 1, 0}));
  EXPECT_EQ(pairs.of_nodes(), Topology::parse("torus:3x3", 9));
  EXPECT_NE(pairs, Topology::parse("torus:6x3", 18));
  EXPECT_EQ(Topology::parse("torus:3x3*1", 9).text(), "torus:3x3");
  const Topology mesh = Topology::parse("mesh:4x3", 12);
  EXPECT_EQ(mesh.dimensions(), 2);
  EXPECT_FALSE(mesh.wraps(0) || mesh.wraps(1) || mesh.wraps(2));
}

TEST(Topology, PartsWithTiesSelectThem) {
  const Topology torus = Topology::parse("torus:4x3*2,ties", 24);
  EXPECT_TRUE(torus.selects_ties());
  EXPECT_NE(torus, Topology::parse("torus:4x3*2", 24));
  EXPECT_EQ(torus.of_nodes().text(), "torus:4x3,ties");
  const auto text = [&](const std::vector<int>& ranks) { return torus.part(ranks)->text(); };
  EXPECT_EQ(text({0, 2, 4, 6}), "torus:4,ties");
  EXPECT_EQ(text({0, 2, 4}), "mesh:3") << "a row that does not wrap has no ties";
  EXPECT_EQ(text({0, 8, 16}), "torus:3");
}

/// The message with which `make` fails, after a check of the status.
template <typename Make>
std::string failure(Status status, const Make& make) {
  try {
    make();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), status) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(Topology, EachBadTextHasItsOwnReason) {
  struct Sample {
    const char* text;
    int ranks;
    const char* reason;
  };
  const Sample samples[] = {
      {"torus:4x", 4, "an extent is missing"},
      {"torus:", 1, "topology 'torus:': an extent is missing"},
      {"torus:x4", 4, "topology 'torus:x4': an extent is missing"},
      {"torus:0x2", 2, "the extent 0 is not in 1..1048576"},
      {"torus:-3", 3, "the extent -3 is not in 1..1048576"},
      {"torus:2097152", 1, "the extent 2097152 is not in 1..1048576"},
      {"torus:99999999999", 1, "'99999999999' is no extent"},
      {"torus:4x4y", 16, "'4y' is no extent"},
      {"torus:m", 1, "'m' is no extent"},
      {"torus: 4", 4, "' 4' is no extent"},
      {"mesh:4x4m", 16, "no dimension of a mesh wraps"},
      {"torus:2x2x2x2", 16, "more than 3 dimensions"},
      {"torus:1024x1024x2", 2, "multiply to more than 1048576 ranks"},
      {"torus:4x4x2m", 16, "has 32 places, but there are 16 ranks"},
      {"mesh:8x8", 65, "has 64 places, but there are 65 ranks"},
      {"torus:3x3*", 9, "'' is no number of ranks on each node"},
      {"torus:3x3*0", 9, "'0' is no number of ranks on each node"},
      {"torus:3x3*2x", 18, "'2x' is no number of ranks on each node"},
      {"torus:3*2*2", 12, "'2*2' is no number of ranks on each node"},
      {"torus:3x*2", 6, "topology 'torus:3x*2': an extent is missing"},
      {"torus:3x3*2", 9, "has 18 places, but there are 9 ranks"},
      {"torus:1024x1024*2", 2, "the extents and the ranks of a node multiply to more than 1048576 ranks"},
      {"torus:3x3,ties", 9, "topology 'torus:3x3,ties': no message can go either way"},
      {"torus:3x4m,ties", 12, "topology 'torus:3x4m,ties': no message can go either way"},
      {"mesh:4x4,ties", 16, "topology 'mesh:4x4,ties': no message can go either way"},
      {"torus:4x4,tie", 16, "'4,tie' is no extent"},
      {"torus:4x4,ties*2", 32, "'4,ties' is no extent"},
      {"node*2", 2, "'node*2' is none of"},
      {"node:8", 8, "'' is no number of ranks in each group"},
      {"node:x*2", 4, "'x' is no number of groups"},
      {"node:0*2", 4, "'0' is no number of groups"},
      {"node:2*1", 2, "groups of 1 on a node of 2 ranks"},
      {"node:1*4", 4, "groups of 4 on a node of 4 ranks"},
      {"node:2*4", 4, "topology 'node:2*4' has 8 places, but there are 4 ranks"},
      {"node:1048576*2", 4, "topology 'node:1048576*2' has too many ranks"},
      {"ring:4", 4, "'ring' is none of"},
      {"torus", 4, "'torus' is none of"},
      {"", 4, "'' is none of"},
  };
  std::set<std::string> messages;
  for (const Sample& sample : samples) {
    const std::string message = failure(Status::invalid_argument, [&] { Topology::parse(sample.text, sample.ranks); });
    EXPECT_NE(message.find(sample.reason), std::string::npos) << message;
    EXPECT_TRUE(messages.insert(message).second) << "said twice: " << message;
  }
}

/// Texts made of the pieces of good ones: each is refused with a reason, or read back as it is written.
TEST(Topology, ALongTextGivesAShortMessage) {
  const std::string word(1'000'000, '7');
  for (const std::string& text : {word, "torus:" + word, "mesh:2x" + word, "torus:2x2," + word, "torus:2*" + word}) {
    try {
      (void)Topology::parse(text, 4);
      ADD_FAILURE() << text.substr(0, 20);
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_LT(message.size(), 2000u) << message.substr(0, 1000);
      EXPECT_NE(message.find(std::to_string(text.size()) + " bytes)"), std::string::npos) << message.substr(0, 1000);
    }
  }
}

TEST(Topology, RandomTextsAreReadOrRefused) {
  const char* const pieces[] = {"torus", "mesh", "node", ":", "3", "2",           "1",    "0",
                                "x",     "m",    "*",    "-", " ", "99999999999", ",ties"};
  for (const Seed& seed : seeds_of("shapes_test/topology_texts", 1)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed.value);
    int read = 0;
    for (int run = 0; run < 20'000; ++run) {
      std::string text = random() % 4 == 0 ? "" : random() % 2 == 0 ? "torus:3" : "mesh:2x";
      for (std::size_t i = random() % 6; i > 0; --i) text += pieces[random() % std::size(pieces)];
      for (const int ranks : {1, 2, 3, 6, 12}) {
        try {
          const Topology topology = Topology::parse(text, ranks);
          ASSERT_EQ(topology.ranks(), ranks) << text;
          ASSERT_EQ(Topology::parse(topology.text(), ranks), topology) << text;
          ++read;
        } catch (const Error& error) {
          ASSERT_EQ(error.status(), Status::invalid_argument) << text;
          ASSERT_FALSE(std::string(error.what()).empty()) << text;
        }
      }
    }
    EXPECT_GT(read, 100);
  }
}

std::string part_text(const char* whole, int ranks, const std::vector<int>& members) {
  const std::optional<Topology> part = Topology::parse(whole, ranks).part(members);
  return part ? part->text() : "none";
}

TEST(Topology, RowsPlanesAndBoxesAreParts) {
  EXPECT_EQ(part_text("torus:3x3", 9, {3, 4, 5}), "torus:3") << "a row";
  EXPECT_EQ(part_text("torus:3x3", 9, {1, 4, 7}), "torus:3") << "a column";
  EXPECT_EQ(part_text("torus:3x3", 9, {5, 3, 4}), "torus:3") << "a ring may begin anywhere";
  EXPECT_EQ(part_text("torus:3x3", 9, {5, 4, 3}), "torus:3") << "and go the other way";
  EXPECT_EQ(part_text("torus:4x3", 12, {4, 5, 6}), "mesh:3") << "some of a ring are a line";
  EXPECT_EQ(part_text("torus:4x3", 12, {7, 4, 5}), "mesh:3") << "also across the end";
  EXPECT_EQ(part_text("mesh:4x3", 12, {4, 5, 6, 7}), "mesh:4");
  EXPECT_EQ(part_text("mesh:4x3", 12, {7, 4, 5}), "none") << "a mesh has ends";
  EXPECT_EQ(part_text("torus:4x3", 12, {0, 1, 4, 5, 8, 9}), "torus:2mx3");
  EXPECT_EQ(part_text("torus:4x3", 12, {0, 4, 8, 1, 5, 9}), "torus:3x2m") << "y first";
  EXPECT_EQ(part_text("torus:2x3", 6, {0, 1, 2, 3, 4, 5}), "torus:2x3") << "all of an extent of 2 has both cables";
  EXPECT_EQ(part_text("torus:3x3x3", 27, {9, 10, 11, 12, 13, 14, 15, 16, 17}), "torus:3x3") << "a plane";
  EXPECT_EQ(part_text("torus:4x4x4", 64, {21, 22, 25, 26, 37, 38, 41, 42}), "mesh:2x2x2") << "a box";
  EXPECT_EQ(part_text("torus:3x3*2", 18, {6, 7, 8, 9, 10, 11}), "torus:3*2") << "whole nodes";
  EXPECT_EQ(part_text("torus:3x3*2", 18, {7, 9, 11}), "torus:3") << "one rank of each node";
  EXPECT_EQ(part_text("torus:3x3*2", 18, {7, 6, 9, 8, 11, 10}), "torus:3*2") << "in any order on a node";
}

TEST(Topology, GroupsOfNeighboursAreKept) {
  const auto text = [](const std::vector<int>& groups) { return Topology::node_of(groups).text(); };
  EXPECT_EQ(text({0, 0, 8, 8, 16, 16}), "node:3*2");
  EXPECT_EQ(text({4, 4, 4, 0, 0, 0}), "node:2*3") << "in any order";
  EXPECT_EQ(text({0, 0, 0}), "node") << "one group";
  EXPECT_EQ(text({0, 1, 2}), "node") << "no rank shares its cache";
  EXPECT_EQ(text({0, 0, 1}), "node") << "of unequal sizes";
  EXPECT_EQ(text({0, 0, 1, 2}), "node");
  EXPECT_EQ(text({0, 1, 0, 1}), "node") << "no neighbours";
  EXPECT_EQ(text({0, 0, 1, 1, 0, 0}), "node") << "one group in two places";
  EXPECT_EQ(text({-1, -1, 1, 1}), "node") << "ranks that are bound to no cache";
  EXPECT_EQ(text({0, 0, -1, -1}), "node");
  EXPECT_EQ(text({5}), "node");
  EXPECT_EQ(part_text("node:4*2", 8, {2, 3, 6, 7}), "node:2*2");
  EXPECT_EQ(part_text("node:4*2", 8, {2, 3}), "none") << "one group";
  EXPECT_EQ(part_text("node:4*2", 8, {0, 2, 4, 6}), "none") << "one of each group";
  EXPECT_EQ(Topology::parse("node:4*2", 8).per_group(), 2);
  EXPECT_EQ(Topology::node(8).per_group(), 0);
}

TEST(Topology, OthersAreNoParts) {
  EXPECT_EQ(part_text("torus:3x3", 9, {0, 4, 8}), "none") << "a diagonal";
  EXPECT_EQ(part_text("torus:5x3", 15, {0, 2, 4}), "none") << "every second";
  EXPECT_EQ(part_text("torus:3x3", 9, {0, 1, 2, 3}), "none") << "a row and one more";
  EXPECT_EQ(part_text("torus:3x3", 9, {0, 1, 3, 5}), "none");
  EXPECT_EQ(part_text("torus:4x3", 12, {0, 1, 2, 3, 5, 6, 7, 4}), "none") << "rows begin at different places";
  EXPECT_EQ(part_text("torus:3x3", 9, {0, 1, 0}), "none") << "back to where it was";
  EXPECT_EQ(part_text("torus:3x3", 9, {4}), "none") << "one rank has no links";
  EXPECT_EQ(part_text("torus:3x3", 9, {}), "none");
  EXPECT_EQ(part_text("torus:3x3*2", 18, {6, 7}), "none") << "one node";
  EXPECT_EQ(part_text("torus:3x3*2", 18, {6, 7, 8}), "none");
  EXPECT_EQ(part_text("torus:3x3*2", 18, {6, 7, 8, 10}), "none");
  EXPECT_EQ(part_text("node", 4, {0, 1}), "none");
}

/// Every box of small tori is found in all of its orders, and its ranks are neighbours as its text says.
TEST(Topology, PartsHaveTheNeighboursOfTheWhole) {
  for (const Seed& seed : seeds_of("shapes_test/topology_parts", 2000)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed.value);
    const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
    const Topology whole = Topology::torus({1 + below(4), 1 + below(4), 1 + below(4)},
                                           {below(2) == 0, below(2) == 0, below(2) == 0}, 3, 1 + below(2));
    Coordinates from = {0, 0, 0};
    Coordinates extents = {1, 1, 1};
    for (std::size_t d = 0; d < 3; ++d) {
      extents[d] = 1 + below(whole.extents()[d]);
      from[d] = below(whole.wraps(static_cast<int>(d)) ? whole.extents()[d] : whole.extents()[d] - extents[d] + 1);
    }
    std::vector<int> ranks;
    for (int index = 0; index < extents[0] * extents[1] * extents[2]; ++index) {
      const Coordinates at = {(from[0] + index % extents[0]) % whole.extents()[0],
                              (from[1] + index / extents[0] % extents[1]) % whole.extents()[1],
                              (from[2] + index / extents[0] / extents[1]) % whole.extents()[2]};
      for (int place = 0; place < whole.per_node(); ++place) ranks.push_back(whole.rank(at) + place);
    }
    const std::optional<Topology> part = whole.part(ranks);
    ASSERT_EQ(part.has_value(), static_cast<int>(ranks.size()) > whole.per_node()) << whole.text();
    if (!part) continue;
    ASSERT_EQ(part->ranks(), static_cast<int>(ranks.size()));
    for (int rank = 0; rank < part->ranks(); ++rank) {
      for (int dimension = 0; dimension < part->dimensions(); ++dimension) {
        const int next = part->neighbour(rank, dimension, 1);
        if (next < 0) continue;
        const int here = ranks[static_cast<std::size_t>(rank)];
        const int there = ranks[static_cast<std::size_t>(next)];
        bool adjacent = false;
        for (int d = 0; d < 3; ++d) adjacent |= whole.neighbour(here, d, 1) == there;
        ASSERT_TRUE(adjacent) << part->text() << " of " << whole.text();
      }
    }
  }
}

TEST(Topology, BadArgumentsAreNamed) {
  const auto refuses = [](const char* reason, const auto& make) {
    const std::string message = failure(Status::invalid_argument, make);
    EXPECT_NE(message.find(reason), std::string::npos) << message;
  };
  refuses("a node of 0 ranks", [] { Topology::node(0); });
  refuses("a node of 1048577 ranks", [] { Topology::node((1 << 20) + 1); });
  refuses("extent 0 of dimension 1", [] { Topology::torus({2, 0, 2}); });
  refuses("extent 3 of dimension 2", [] { Topology::torus({2, 2, 3}, {true, true, true}, 2); });
  refuses("a torus of 4 dimensions", [] { Topology::torus({2, 2, 2}, {true, true, true}, 4); });
  refuses("0 ranks on each node", [] { Topology::torus({1, 1, 1}, {true, true, true}, 1, 0); });
  refuses("a torus of 0 dimensions", [] { Topology::torus({1, 1, 1}, {true, true, true}, 0); });
}

}  // namespace
}  // namespace torii::tests
