// SPDX-License-Identifier: Apache-2.0
// Rank maps: their text, what is refused with which words, what a topology says under them, and its parts.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "runtime/base/status.hpp"
#include "runtime/topology/rank_map.hpp"
#include "tests/support/test_run.hpp"

namespace torii {
namespace {

Topology mapped(const std::string& topology, int ranks, const std::string& text) {
  return with_rank_map(Topology::parse(topology, ranks), text, "here");
}

TEST(RankMap, LinesAndListsPutRanksInTheirPlaces) {
  const Topology lines =
      mapped("torus:2x3", 6, "# who stands where\n0 1 2\n 1\t0 0\r\n\n2 1 0 # x first\n4 0 1\n5 0 2\n3 1 1");
  const Topology list = mapped("torus:2x3", 6, "list:5,0,1,3,2,4\n");
  EXPECT_EQ(lines, list);
  EXPECT_EQ(list.map_text(), "list:5,0,1,3,2,4");
  EXPECT_EQ(list.text(), "torus:2x3");
  EXPECT_EQ(list.coordinates(0), (Coordinates{1, 2, 0}));
  EXPECT_EQ(list.rank({0, 0, 0}), 1);
  EXPECT_EQ(list.neighbour(1, 0, 1), 2);
  EXPECT_EQ(list.neighbour(1, 1, 1), 4);
  for (int rank = 0; rank < 6; ++rank) EXPECT_EQ(list.rank(list.coordinates(rank)), rank);
}

TEST(RankMap, RanksOfANodeKeepTheirOrder) {
  const Topology topology = mapped("mesh:2*2", 4, "0 1\n1 0\n2 1\n3 0\n");
  EXPECT_EQ(topology.map_text(), "list:2,0,3,1");
  EXPECT_EQ(topology.node_of(2), 1);
  EXPECT_EQ(topology.place_of(2), 1);
  EXPECT_EQ(topology.rank_at(0, 1), 3);
  EXPECT_EQ(topology.neighbour(0, 0, -1), 1);
}

TEST(RankMap, TheOrderOfRanksIsNoMap) {
  const Topology plain = Topology::parse("torus:3x3", 9);
  EXPECT_EQ(with_rank_map(plain, "list:0,1,2,3,4,5,6,7,8", "here"), plain);
  EXPECT_EQ(with_rank_map(plain, "", "here"), plain);
  EXPECT_EQ(plain.map_text(), "");
  EXPECT_FALSE(plain.is_mapped());
}

TEST(RankMap, EachFaultIsNamed) {
  struct Bad {
    const char* topology;
    const char* text;
    const char* message;
  };
  const Bad all[] = {
      {"node", "list:0,1,2,3", "rank map here: the topology is node; places need a torus or a mesh (TORII_TOPOLOGY)"},
      {"torus:2x2", "0 0 0\n1 1\n", "here, line 2: '1 1' has 2 words; there must be a rank and 2 coordinates"},
      {"torus:2x2", "0 0 0 0\n", "line 1: '0 0 0 0' has 4 words"},
      {"torus:2x2", "0 0 0\nzwei 0 1\n", "line 2: rank is 'zwei'; it must be a number from 0 to 3"},
      {"torus:2x2", "4 0 0\n", "line 1: rank is '4'; it must be a number from 0 to 3"},
      {"torus:2x2", "-1 0 0\n", "line 1: rank is '-1'"},
      {"torus:2x2", "0 2 0\n", "line 1: x is '2'; it must be a number from 0 to 1"},
      {"torus:2x2", "0 0 1e3\n", "line 1: y is '1e3'; it must be a number from 0 to 1"},
      {"torus:2x2", "0 0 0\n1 1 0\n\n0 0 1\n", "line 4: rank 0 is in line 1 already"},
      {"torus:2x2", "0 0 0\n1 1 0\n2 1 0\n3 1 1\n", "line 3: place 1 0 of rank 2 is taken by rank 1 (line 2)"},
      {"torus:2*2", "0 0\n1 0\n2 0\n3 1\n",
       "line 3: place 0 of rank 2 is taken by rank 0 (line 1); a place has 2 ranks"},
      {"torus:2x2", "0 0 0\n1 1 0\n3 1 1\n", "here: rank 2 is missing; there must be a line for each of 4 ranks"},
      {"torus:2x2", "\n", "rank 0 is missing"},
      {"torus:2x2", "list:", "entry 0 is ''; it must be a number from 0 to 3"},
      {"torus:2x2", "list:0,1,,3", "entry 2 is ''"},
      {"torus:2x2", "list:0,1,4,3", "entry 2 is '4'; it must be a number from 0 to 3"},
      {"torus:2x2", "list:0,1,1,3", "entry 2 is 1, the place of rank 1 already"},
      {"torus:2x2", "list:0,1,2", "the list has 3 entries, but there are 4 ranks; rank 3 is missing"},
  };
  for (const Bad& bad : all) {
    try {
      (void)mapped(bad.topology, 4, bad.text);
      ADD_FAILURE() << bad.text << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::invalid_argument);
      EXPECT_NE(std::string(error.what()).find(bad.message), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW((void)Topology::torus({2, 1, 1}).with_positions({0, 0}), Error);
  EXPECT_THROW((void)Topology::node(2).with_positions({0, 1}), Error);
}

TEST(RankMap, ALongWordGivesAShortMessage) {
  const std::string word(1'000'000, 'x');
  for (const std::string& text : {word, "0 0 " + word, "list:0,1,2," + word}) {
    try {
      (void)mapped("torus:2x2", 4, text);
      ADD_FAILURE() << text.substr(0, 20);
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_LT(message.size(), 1000u) << message.substr(0, 1000);
      EXPECT_NE(message.find(" bytes)"), std::string::npos) << message.substr(0, 1000);
    }
  }
}

TEST(RankMap, FilesAreRead) {
  const std::string path = std::filesystem::temp_directory_path() / ("torii_test_map_" + std::to_string(getpid()));
  std::ofstream(path) << "0 1\n1 0\n";
  EXPECT_EQ(read_rank_map(path), "0 1\n1 0\n");
  std::ofstream(path, std::ios::trunc).close();
  EXPECT_EQ(read_rank_map(path), "\n") << "an empty file is a map that lacks all ranks";
  std::filesystem::remove(path);
  EXPECT_EQ(read_rank_map("list:1,0"), "list:1,0");
  EXPECT_EQ(read_rank_map(""), "");
  // A pipe without a writer and a device without an end must not hang who reads them.
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const std::string missing = path + "_missing";
  for (const std::string& bad : {missing, path, std::string("/"), std::string("/dev/zero")}) {
    try {
      (void)read_rank_map(bad);
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::invalid_argument);
      EXPECT_EQ(error.what(), "TORII_RANK_MAP, a file or list:0,1,2,...: cannot read '" + bad +
                                  "': " + (bad == missing ? "No such file or directory" : "it is no regular file"));
    }
  }
  std::filesystem::remove(path);
}

/// Whatever is taken holds every rank once; whatever is not is refused with a sentence.
TEST(RankMap, AnyTextIsTakenWholeOrRefused) {
  for (const tests::Seed& seed : tests::seeds_of("shapes_test/rank_map_texts", 1)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed.value);
    const std::string good[] = {"0 1 0\n1 0 0\n2 0 1\n3 1 1\n", "list:3,2,1,0"};
    constexpr std::string_view kAlphabet = "0123 ,:-\n#l\t";
    int taken = 0;
    for (int round = 0; round < 20'000; ++round) {
      std::string text = good[random() % 2];
      for (std::size_t change = random() % 3; change > 0 && !text.empty(); --change) {
        const std::size_t at = random() % text.size();
        const char c = kAlphabet[random() % kAlphabet.size()];
        if (random() % 3 == 0)
          text.erase(at, 1);
        else if (random() % 2 == 0)
          text.insert(at, 1, c);
        else
          text[at] = c;
      }
      try {
        const Topology topology = mapped("torus:2x2", 4, text);
        ++taken;
        for (int rank = 0; rank < 4; ++rank) ASSERT_EQ(topology.rank(topology.coordinates(rank)), rank) << text;
      } catch (const Error& error) {
        ASSERT_EQ(error.status(), Status::invalid_argument) << text;
      }
    }
    EXPECT_GT(taken, 1000);
  }
}

/// A split by rows or planes finds its part whatever the order in which its ranks stand.
TEST(RankMap, PartsHaveTheNeighboursOfTheWhole) {
  for (const tests::Seed& seed : tests::seeds_of("shapes_test/rank_map_parts", 500)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed.value);
    const Topology plain =
        Topology::torus({3, 2, 4}, {true, random() % 2 == 0, true}, 3, 1 + static_cast<int>(random() % 2));
    std::vector<int> positions(static_cast<std::size_t>(plain.ranks()));
    std::iota(positions.begin(), positions.end(), 0);
    std::shuffle(positions.begin(), positions.end(), random);
    const Topology whole = plain.with_positions(positions);
    const auto dimension = static_cast<std::size_t>(random() % 3);
    const int layer = static_cast<int>(random()) & 1;
    std::vector<int> members;  // a layer, in the order of ranks
    for (int rank = 0; rank < whole.ranks(); ++rank) {
      if (whole.coordinates(rank)[dimension] == layer) members.push_back(rank);
    }
    const std::optional<Topology> part = whole.part(members);
    ASSERT_TRUE(part) << whole.map_text();
    ASSERT_EQ(part->nodes() * plain.extents()[dimension], whole.nodes());
    const Topology again = with_rank_map(Topology::parse(part->text(), part->ranks()), part->map_text(), "here");
    ASSERT_EQ(again, *part) << "what a team's options carry";
    for (int member = 0; member < part->ranks(); ++member) {
      for (int d = 0; d < part->dimensions(); ++d) {
        const int next = part->neighbour(member, d, 1);
        if (next < 0) continue;
        const int here = members[static_cast<std::size_t>(member)];
        const int there = members[static_cast<std::size_t>(next)];
        bool adjacent = false;
        for (int each = 0; each < 3; ++each) {
          for (const int direction : {1, -1}) {
            const int other = whole.neighbour(here, each, direction);
            adjacent |= other >= 0 && whole.node_of(other) == whole.node_of(there);
          }
        }
        ASSERT_TRUE(adjacent);
      }
    }
  }
}

}  // namespace
}  // namespace torii
