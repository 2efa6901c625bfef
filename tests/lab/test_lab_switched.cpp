// SPDX-License-Identifier: Apache-2.0
// Sites behind long lines and trees of switches: as data, and for real.
#include <fstream>
#include <regex>

#include "runtime/topology/tree_topology.hpp"
#include "tests/lab/lab_run.hpp"
#include "tests/lab/refusal.hpp"
#include "tests/support/places.hpp"
#include "tests/support/test_run.hpp"
#include "tools/torii-lab/switched.hpp"

namespace torii::tests {
namespace {

using namespace tools;

double number_after(const std::string& output, const std::string& words) {
  std::smatch match;
  if (std::regex_search(output, match, std::regex(words + " ([0-9.]+)"))) return std::stod(match[1]);
  ADD_FAILURE() << "no '" << words << "' in: " << output;
  return 0;
}

Words probe(int from, int to, long long bytes) {
  return {helper("lab_probe"), std::to_string(from), std::to_string(to), "10.95.0." + std::to_string(to + 1),
          std::to_string(bytes)};
}

TEST(LabSites, TwoSitesShareALineAndMoreABackbone) {
  const LabNetwork two = sites_network("3+2", {});
  EXPECT_EQ(two.ranks, 5);
  ASSERT_EQ(two.nodes.size(), 7u);
  ASSERT_EQ(two.lines.size(), 1u);
  EXPECT_EQ(two.lines[0].delay_ms, 8);
  EXPECT_EQ(two.nodes[5].devices.size(), 4u);  // three hosts and the line
  EXPECT_EQ(two.nodes[3].devices[0].peer, 6);
  EXPECT_EQ(two.nodes[3].addresses, std::vector<std::string>{"10.95.0.4"});
  EXPECT_EQ(two.nodes[3].neighbours.size(), 4u);
  const LabNetwork three = sites_network("2+1+1", {});
  EXPECT_EQ(three.nodes.size(), 8u);
  ASSERT_EQ(three.lines.size(), 3u);
  for (const LabLine& line : three.lines) EXPECT_EQ(line.delay_ms, 4);
}

/// The topology that ranks find is the one that was made, whatever was changed afterwards.
TEST(LabSites, RanksFindTheirTree) {
  SitesOptions options;
  options.capacity_mbit = 100;
  LabNetwork network = sites_network("3+2", options);
  EXPECT_EQ(network.topology, "tree:/run/netns/.tree");
  set_rate(network, "5:wan=20");
  const TreeTopology tree = TreeTopology::parse(sites_tree_text(network), "test");
  EXPECT_EQ(tree.ranks(), 5);
  const TreeLink& line = tree.links().back();
  EXPECT_EQ(line.bandwidth[0], 2391017) << "1448 of 1514 bytes of 20 Mbit/s";
  EXPECT_EQ(line.bandwidth[1], 11955086);
  EXPECT_EQ(line.latency_ns[0], 8'000'000);
  EXPECT_EQ(TreeTopology::parse(sites_tree_text(sites_network("2+1+1", {})), "test").nodes().size(), 8u);
}

TEST(LabSites, BadInputIsNamed) {
  for (const char* const text : {"", "8", "8+", "+8", "8+0", "8+x", "8++8", "8+-1"}) {
    EXPECT_NE(refusal([&] { sites_network(text, {}); }).find("write the hosts of two sites or more, as in 8+8"),
              std::string::npos)
        << text;
  }
  EXPECT_NE(refusal([] { sites_network("40+40", {}); }).find("has 80 ranks on 82 nodes"), std::string::npos);
}

class LabTree : public Lab {
 protected:
  std::string tree(const std::string& text) const {
    std::ofstream(path("file")) << text;
    return path("file");
  }
};

constexpr const char* kTree =
    "node a comm\nnode b comm\nnode s relay\nnode t relay\nnode c comm\n"
    "link a s 50Mbit/s 50Mbit/s 0us 0us full\nlink b s 50Mbit/s 50Mbit/s 0us 0us full\n"
    "link s t 20Mbit/s 5Mbit/s 0us 0us full\nlink c t 50Mbit/s 50Mbit/s 0us 0us full\n";

TEST_F(LabTree, EachDirectionHasItsRate) {
  const LabNetwork network = tree_network(tree(kTree));
  EXPECT_EQ(network.ranks, 3);
  ASSERT_EQ(network.nodes.size(), 5u);
  ASSERT_EQ(network.nodes[3].devices.size(), 3u);
  EXPECT_EQ(network.nodes[3].devices[2].rate_mbit, 20);
  EXPECT_EQ(network.nodes[4].devices[0].rate_mbit, 5);
  EXPECT_EQ(network.nodes[4].devices[0].peer_device, network.nodes[3].devices[2].name);
}

TEST_F(LabTree, BadInputIsNamed) {
  const std::string half = "node a comm\nnode b comm\nlink a b 1MB/s 1MB/s 0us 0us half\n";
  EXPECT_NE(refusal([&] { tree_network(tree(half)); }).find("between a and b is half duplex"), std::string::npos);
  const std::string slow = "node a comm\nnode b comm\nlink a b 1B/s 1MB/s 0us 0us full\n";
  EXPECT_NE(refusal([&] { tree_network(tree(slow)); }).find("between a and b has"), std::string::npos);
  EXPECT_NE(refusal([&] { tree_network(path("none")); }).find("none"), std::string::npos);
}

TEST_F(LabTree, LinksKeepTheirRates) {
  for (const auto& [from, to, rate] : {std::tuple(0, 2, 20.0), std::tuple(2, 1, 5.0)}) {
    std::string output;
    const auto json = report({"tree", tree(kTree)}, probe(from, to, static_cast<long long>(rate * 1e5)), &output);
    EXPECT_EQ(json["nodes"], 5);
    const double measured = number_after(output, "bytes at");
    // A busy machine makes a link slower, but nothing makes it faster.
    EXPECT_LT(measured, 1.1 * rate) << output;
    EXPECT_GT(measured, 0.5 * rate) << output;
  }
}

TEST_F(Lab, LongLinesDelayAndWindowsBoundAStream) {
  const Words network{"sites", "1+2", "--rate", "200", "--delay", "20", "--capacity", "100", "--window", "64K"};
  std::string output;
  const auto json = report(network, probe(0, 2, 1'000'000), &output);
  EXPECT_GT(number_after(output, "connected in"), 40);
  EXPECT_LT(number_after(output, "connected in"), 60);
  // 64 KiB in each round trip of 40 ms are 13.1 Mbit/s.
  EXPECT_LT(number_after(output, "bytes at"), 13.5);
  EXPECT_GT(number_after(output, "bytes at"), 4);
  EXPECT_GT(link_bytes(json, 3, "wan"), 1e6);
  EXPECT_LT(link_bytes(json, 2, "node"), 1e5);
}

TEST_F(Lab, SitesOfABackboneReachEachOther) {
  std::string output;
  const auto json = report({"sites", "1+1+1", "--delay", "4"}, {helper("join_rank"), "gather"}, &output);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(holds(output, "rank " + std::to_string(rank) + ": gathered 3")) << output;
  }
}

/// A stream breaks in mid-operation: what comes afterwards is right, or all ranks say so in time.
TEST_F(Lab, ALostStreamBetweenSitesIsNoticed) {
  if (!is_full()) GTEST_SKIP() << "only with TORII_TEST_FULL; test_node_failures is short";
  for (int round = 0; round < 12; ++round) {
    std::string output;
    (void)report({"sites", "2+2", "--capacity", "100", "--window", "64K"},
                 {"env", "TORII_ENGINES=1", "TORII_TIMEOUT=5", helper("failure_rank"), "cut", std::to_string(round % 4),
                  std::to_string(400'000 + 31'000 * round), "200000"},
                 &output);
    const auto count = [&](const char* text) {
      const std::regex line(text);
      return std::distance(std::sregex_iterator(output.begin(), output.end(), line), std::sregex_iterator());
    };
    const auto ended = count("rank [0-9] at [0-9.]+ got (peer_lost|timeout):");
    const auto went_on = count("went on");
    EXPECT_TRUE((ended == 4 && went_on == 0) || (ended == 0 && went_on == 4)) << output;
  }
}

/// The tree and the rates that torii-info finds are those that were made; auto then takes lanes.
TEST_F(Lab, MeasureFindsTheSites) {
  if (!is_full()) GTEST_SKIP() << "only with TORII_TEST_FULL; it takes 20 s and more";
  const std::string torii_info = bin_dir() + "/torii-info";
  const Words network{"sites", "2+2", "--capacity", "30", "--window", "64K"};
  (void)report(network,
               {"env", "TORII_ENGINES=1", torii_info, "measure", "--tree", path("tree"), "--tune", path("tune")});
  const TreeTopology tree = TreeTopology::load(path("tree"));
  ASSERT_EQ(tree.ranks(), 4);
  const TreeLink& line = tree.links().back();
  EXPECT_GT(line.latency_ns[0], 7'500'000);
  EXPECT_LT(line.latency_ns[0], 12'000'000);
  EXPECT_LT(line.bandwidth[0], 3'750'000) << "30 Mbit/s";
  EXPECT_GT(line.bandwidth[0], 1'000'000);
}

}  // namespace
}  // namespace torii::tests
