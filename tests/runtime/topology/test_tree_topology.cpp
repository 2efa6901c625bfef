// SPDX-License-Identifier: Apache-2.0
// Trees of links: what a file says, every mistake in one, ways, orders, parts, and topologies made of them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "runtime/base/status.hpp"
#include "runtime/topology/routing.hpp"
#include "runtime/topology/topology.hpp"
#include "tests/collectives/algorithms/cluster_trees.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

constexpr const char* kPair = R"(# two machines and a switch
node a comm      # rank 1
node s relay

node b comm
link a s 100MB/s 11.5MB/s 15us 0.5ms full
link s b 350Mbit/s 350Mbit/s 8ms 20ns half
rank 1 a
rank 0 b
root a
)";

std::string failure(const std::string& text) {
  try {
    (void)TreeTopology::parse(text, "F");
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::invalid_argument);
    return error.what();
  }
  return "nothing is wrong";
}

TEST(TreeTopology, ReadsEveryStatement) {
  const TreeTopology tree = TreeTopology::parse(kPair, "F");
  ASSERT_EQ(tree.nodes().size(), 3u);
  EXPECT_EQ(tree.nodes()[0], (TreeNode{"a", 1}));
  EXPECT_EQ(tree.nodes()[1], (TreeNode{"s", -1}));
  ASSERT_EQ(tree.links().size(), 2u);
  EXPECT_EQ(tree.links()[0], (TreeLink{{0, 1}, {100'000'000, 11'500'000}, {15'000, 500'000}, false}));
  EXPECT_EQ(tree.links()[1], (TreeLink{{1, 2}, {43'750'000, 43'750'000}, {8'000'000, 20}, true}));
  EXPECT_EQ(tree.ranks(), 2);
  EXPECT_EQ(tree.node_of(0), 2);
  EXPECT_EQ(tree.root(), 1);
  // Without placements ranks go to comm nodes in the order of their lines, and the root is rank 0.
  const TreeTopology plain = TreeTopology::parse("node a comm\r\nnode b comm\r\nlink a b 1B/s 1GB/s 0s 0s full", "F");
  EXPECT_EQ(plain.node_of(1), 1);
  EXPECT_EQ(plain.root(), 0);
  EXPECT_EQ(plain.links()[0].bandwidth[1], 1'000'000'000);
}

TEST(TreeTopology, TextIsReadBack) {
  for (const Seed& seed : seeds_of("shapes_test/trees", 1)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed.value);
    for (int i = 0; i < 200; ++i) {
      const TreeTopology tree = random_tree(1 + i % 9, i % 2 == 0, random);
      ASSERT_EQ(TreeTopology::parse(tree.text(), "F"), tree) << tree.text();
      ASSERT_EQ(tree.reversed().reversed(), tree);
    }
  }
}

struct Mistake {
  const char* lines;  ///< after: node a comm, node b comm, node s relay
  const char* says;
};

TEST(TreeTopology, EveryMistakeNamesLineAndToken) {
  const std::vector<Mistake> mistakes = {
      {"fork a b", "line 4: 'fork' is no statement; it must be node, link, rank or root"},
      {"node a comm", "line 4: the node 'a' is declared twice"},
      {"node c hub", "line 4: 'hub' is no kind; it must be comm or relay"},
      {"node c", "line 4: a word is missing behind 'c'; write: node NAME comm|relay"},
      {"node c comm 3", "line 4: '3' is one word too many"},
      {"link a c 1B/s 1B/s 0s 0s full", "line 4: no node 'c' is declared above"},
      {"link a s 1B/s 1B/s 0s 0s both", "line 4: 'both' is no duplex; it must be full or half"},
      {"link a s 1B/s 1B/s 0s 0s", "line 4: a word is missing behind '0s'; write: link A B"},
      {"link a s 0MB/s 1B/s 0s 0s full", "line 4: the bandwidth '0MB/s' is not in 1B/s..1e9GB/s"},
      {"link a s 1B/s -5MB/s 0s 0s full", "line 4: the bandwidth '-5MB/s' is not in"},
      {"link a s 5mB/s 1B/s 0s 0s full", "line 4: '5mB/s': 'mB/s' is no unit of a bandwidth; it must be one of B/s"},
      {"link a s 5 1B/s 0s 0s full", "line 4: '5': '' is no unit of a bandwidth"},
      {"link a s fast 1B/s 0s 0s full", "line 4: 'fast' is no bandwidth; write a number with one of B/s, kB/s"},
      {"link a s infB/s 1B/s 0s 0s full", "line 4: 'infB/s' is no bandwidth"},
      {"link a s 1B/s 1B/s 15min 0s full", "line 4: '15min': 'min' is no unit of a latency; it must be one of ns"},
      {"link a s 1B/s 1B/s 0s -1us full", "line 4: the latency '-1us' is not in 0s..3600s"},
      {"link a s 1B/s 2B/s 0s 0s half", "line 4: the two directions of a half-duplex link share one bandwidth"},
      {"link a a 1B/s 1B/s 0s 0s full", "line 4: the link from 'a' to 'a' closes a cycle"},
      {"link a b 1B/s 1B/s 0s 0s full\nlink b s 1B/s 1B/s 0s 0s full\nlink s a 1B/s 1B/s 0s 0s full",
       "line 6: the link from 's' to 'a' closes a cycle"},
      {"link a s 1B/s 1B/s 0s 0s full", "'F': no path leads from 'a' to 'b'; links must join all nodes"},
      {"rank 0 s", "line 4: rank 0 is placed on the relay 's'"},
      {"rank 0 a\nrank 1 a", "line 5: rank 1 is placed on 'a', where rank 0 is already"},
      {"rank 0 a\nrank 0 b", "line 5: rank 0 is placed twice, first in line 4"},
      {"rank first a", "line 4: 'first' is no rank"},
      {"rank -1 a", "line 4: '-1' is no rank"},
      {"rank 0 a\nlink a s 1B/s 1B/s 0s 0s full\nlink b s 1B/s 1B/s 0s 0s full", "no rank is placed on 'b'"},
      {"rank 0 a\nrank 7 b\nlink a s 1B/s 1B/s 0s 0s full\nlink b s 1B/s 1B/s 0s 0s full",
       "line 5: rank 7 of 2 comm nodes; ranks must be 0 to 1"},
      {"root a\nroot b", "line 5: a second root, 'b'; the root is 'a' already"},
      {"root s", "line 4: the root 's' is a relay"},
      {"root x", "line 4: no node 'x' is declared above"},
  };
  for (const Mistake& mistake : mistakes) {
    const std::string message = failure(std::string("node a comm\nnode b comm\nnode s relay\n") + mistake.lines);
    EXPECT_NE(message.find(mistake.says), std::string::npos) << mistake.lines << "\n" << message;
    EXPECT_EQ(message.rfind("topology file 'F'", 0), 0u) << message;
  }
  EXPECT_NE(failure("node s relay").find("no comm node"), std::string::npos);
  EXPECT_NE(failure("").find("no comm node"), std::string::npos);
}

TEST(TreeTopology, ALongWordGivesAShortMessage) {
  const std::string word(1'000'000, 'x');
  for (const std::string& line :
       {word, "node " + word, "node c " + word, "root " + word, "node " + word + " comm\nnode " + word + " comm",
        "link a b " + word + " 1B/s 0s 0s full"}) {
    const std::string message = failure("node a comm\nnode b comm\n" + line);
    EXPECT_LT(message.size(), 2000u) << message.substr(0, 1000);
    EXPECT_NE(message.find("bytes)"), std::string::npos) << message.substr(0, 1000);
  }
}

TEST(TreeTopology, FilesThatCannotBeReadAreNamed) {
  const std::string missing = "no-such-file.tree";
  try {
    (void)TreeTopology::load(missing);
    FAIL() << "read " << missing;
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "topology file: cannot read 'no-such-file.tree': No such file or directory");
  }
  EXPECT_THROW((void)TreeTopology::read("."), Error);
}

TEST(TreeTopology, WaysAndOrders) {
  const TreeTopology tree = tree_of({2, 2, 2, true, true});
  const std::vector<TreeHop> way = tree.way(tree.node_of(0), tree.node_of(7));
  int node = tree.node_of(0);
  for (const TreeHop hop : way) {
    EXPECT_EQ(tree.links()[static_cast<std::size_t>(hop.link)].ends[static_cast<std::size_t>(hop.direction)], node);
    node = tree.reaches(hop);
  }
  EXPECT_EQ(node, tree.node_of(7));
  EXPECT_EQ(way.size(), 5u);
  EXPECT_TRUE(tree.way(3, 3).empty());
  EXPECT_EQ(tree.depth_first(0), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  // From the other cluster: its own ranks first.
  EXPECT_EQ(tree.depth_first(6), (std::vector<int>{6, 7, 4, 5, 0, 1, 2, 3}));
}

TEST(TreeTopology, PartsKeepTheWaysBetweenTheirRanks) {
  const TreeTopology tree = tree_of({2, 3, 2, true, true});
  const std::vector<int> ranks = {7, 0, 6};
  const TreeTopology part = tree.part(ranks);
  EXPECT_EQ(part.ranks(), 3);
  EXPECT_EQ(part.root(), 1);
  for (std::size_t a = 0; a < ranks.size(); ++a) {
    for (std::size_t b = 0; b < ranks.size(); ++b) {
      const auto whole_way = tree.way(tree.node_of(ranks[a]), tree.node_of(ranks[b]));
      const auto way = part.way(part.node_of(static_cast<int>(a)), part.node_of(static_cast<int>(b)));
      ASSERT_EQ(way.size(), whole_way.size());
      for (std::size_t i = 0; i < way.size(); ++i) {
        const TreeLink& link = part.links()[static_cast<std::size_t>(way[i].link)];
        const TreeLink& of_whole = tree.links()[static_cast<std::size_t>(whole_way[i].link)];
        EXPECT_EQ(link.bandwidth, of_whole.bandwidth);
      }
    }
  }
  // 3 ranks, 2 machines and 2 switches; what led to the others is gone.
  EXPECT_EQ(part.nodes().size(), 7u);
  EXPECT_EQ(TreeTopology::parse(part.text(), "part"), part);
  EXPECT_EQ(tree.part(std::vector<int>{4}).nodes().size(), 1u);
}

TEST(TreeTopology, TopologiesOfTrees) {
  const auto file = std::filesystem::temp_directory_path() / ("torii_test_tree_" + std::to_string(getpid()));
  std::ofstream(file) << kPair;
  const std::string text = "tree:" + file.string();
  const Topology topology = Topology::parse(text, 2);
  EXPECT_EQ(topology.kind(), Topology::Kind::tree);
  EXPECT_EQ(topology.text(), text);
  EXPECT_EQ(topology.nodes(), 2);
  EXPECT_EQ(topology.neighbour(0, 0, 1), -1);
  EXPECT_EQ(topology, Topology::of_tree(TreeTopology::parse(kPair, "F"), "elsewhere"));
  EXPECT_FALSE(topology == Topology::node(2));
  std::string message = "nothing";
  try {
    (void)Topology::parse(text, 3);
  } catch (const Error& error) {
    message = error.what();
  }
  std::filesystem::remove(file);
  EXPECT_NE(message.find("has 2 comm nodes, but there are 3 ranks"), std::string::npos) << message;
  EXPECT_THROW((void)Topology::parse("tree:", 2), Error);

  EXPECT_EQ(link_count(topology), 4);
  std::vector<LinkId> links;
  append_route(topology, 0, 1, 0, links);  // from b over s to a, against both links' direction 0
  EXPECT_EQ(links, (std::vector<LinkId>{3, 1}));
  EXPECT_EQ(topology.part(std::vector<int>{1})->ranks(), 1);
}

}  // namespace
}  // namespace torii::tests
