// SPDX-License-Identifier: Apache-2.0
// The laboratory for real: links and their rates, ways and cables, what ranks find, Open MPI.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <regex>
#include <set>

#include "tests/lab/lab_run.hpp"
#include "tests/support/places.hpp"

namespace torii::tests {
namespace {

constexpr double kBytes = 1e6;

/// Sends `bytes` from one node to an address of another, and gives the report.
Words probe(int from, int to, const std::string& address, double bytes) {
  return {helper("lab_probe"), std::to_string(from), std::to_string(to), address,
          std::to_string(static_cast<long long>(bytes))};
}

double measured_mbit(const std::string& output) {
  std::smatch match;
  const std::regex pattern("at ([0-9.]+) Mbit/s");
  if (std::regex_search(output, match, pattern)) return std::stod(match[1]);
  ADD_FAILURE() << output;
  return 0;
}

TEST_F(Lab, RanksOfEveryNodeJoin) {
  for (const Words& network : {Words{"torus", "3x3", "--rate", "500"}, Words{"mesh", "2x3", "--rate", "500"},
                               Words{"rails", "3", "--rate", "500"}}) {
    const std::size_t ranks = network[0] == "torus" ? 9 : network[0] == "mesh" ? 6 : 2;
    std::string output;
    const auto json = report(network, {helper("join_rank"), "gather"}, &output);
    EXPECT_EQ(json["nodes"], ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      EXPECT_TRUE(holds(output, "rank " + std::to_string(rank) + ": gathered " + std::to_string(ranks))) << output;
    }
  }
}

TEST_F(Lab, TheRateOfALinkIsKept) {
  // TCP's payload is 1448 of the 1514 bytes of a packet on the link.
  constexpr double kPayloadShare = 1448.0 / 1514;
  for (const double rate : {20.0, 5.0}) {
    const Words network{"mesh", "2", "--rate", "20", "--link", "0:xp=" + std::to_string(rate)};
    const double expected = rate * kPayloadShare;
    double measured = 0;
    // The machine may be busy with something else, which makes a link slower, but never faster.
    for (int attempt = 0; attempt < 3 && measured < 0.9 * expected; ++attempt) {
      std::string output;
      report(network, probe(0, 1, "10.80.0.2", rate * 2e5), &output);  // 1.6 s of it
      measured = measured_mbit(output);
      EXPECT_LT(measured, 1.1 * expected) << output;
    }
    EXPECT_GT(measured, 0.9 * expected);
  }
}

TEST_F(Lab, PacketsGoInDimensionOrder) {
  const auto json = report({"torus", "3x3", "--rate", "200"}, probe(0, 4, "10.80.0.5", kBytes));
  EXPECT_NEAR(link_bytes(json, 0, "xp"), 1.04 * kBytes, 0.04 * kBytes);
  EXPECT_NEAR(link_bytes(json, 1, "yp"), 1.04 * kBytes, 0.04 * kBytes);
  // Acknowledgements go x first as well.
  EXPECT_GT(link_bytes(json, 4, "xm"), 0);
  EXPECT_GT(link_bytes(json, 3, "ym"), 0);
  double others = 0;
  for (const auto& link : json["links"]) others += link["bytes"].get<double>();
  for (const auto& [node, device] : {std::pair(0, "xp"), std::pair(1, "yp"), std::pair(4, "xm"), std::pair(3, "ym")}) {
    others -= link_bytes(json, node, device);
  }
  EXPECT_EQ(others, 0);
}

TEST_F(Lab, AddressesChooseTheWayRoundAndTheCable) {
  struct Case {
    const char* shape;
    const char* address;
    const char* by;
    const char* not_by;
  };
  // 2: two cables between two nodes. 4: two ways of equal length to the node opposite.
  const Case cases[] = {{"2", "10.80.0.2", "xp", "xm"},
                        {"2", "10.81.0.2", "xm", "xp"},
                        {"4", "10.80.0.3", "xp", "xm"},
                        {"4", "10.81.0.3", "xm", "xp"}};
  for (const Case& one : cases) {
    const int to = one.shape[0] == '2' ? 1 : 2;
    const auto json = report({"torus", one.shape, "--rate", "200"}, probe(0, to, one.address, kBytes));
    EXPECT_NEAR(link_bytes(json, 0, one.by), 1.04 * kBytes, 0.04 * kBytes) << one.shape << ' ' << one.address;
    EXPECT_EQ(link_bytes(json, 0, one.not_by), 0) << one.shape << ' ' << one.address;
  }
}

TEST_F(Lab, RailsAreLinksOfTheirOwn) {
  const auto json = report({"rails", "4", "--rate", "200"}, probe(0, 1, "10.90.2.2", kBytes));
  for (int rail = 0; rail < 4; ++rail) {
    const double bytes = link_bytes(json, 0, "rail" + std::to_string(rail));
    if (rail == 2) {
      EXPECT_NEAR(bytes, 1.04 * kBytes, 0.04 * kBytes);
    } else {
      EXPECT_LT(bytes, 1000) << rail;
    }
  }
}

TEST_F(Lab, RanksFindTheirPlaceAndAFreshToken) {
  const std::string script =
      "printf '%s %s %s:%s %s %s %s %s\\n' $RANK $WORLD_SIZE $MASTER_ADDR $MASTER_PORT "
      "$TORII_TOPOLOGY $TORII_INTERFACE $(cat /proc/sys/kernel/hostname) $TORII_JOB_TOKEN";
  std::set<std::string> tokens;
  for (int start = 0; start < 2; ++start) {
    std::string output;
    report({"torus", "2x2"}, {"sh", "-c", script}, &output);
    for (int rank = 0; rank < 4; ++rank) {
      const std::string number = std::to_string(rank);
      const std::regex line(number + " 4 10\\.80\\.0\\.1:29500 torus:2x2 =node node" + number + " ([0-9a-f]{64})");
      std::smatch match;
      ASSERT_TRUE(std::regex_search(output, match, line)) << output;
      tokens.insert(match[1]);
    }
  }
  EXPECT_EQ(tokens.size(), 2u);
}

TEST_F(Lab, InsideARankOfAnotherJobItsOwnRanksJoin) {
  Words words{bin_dir() + "/torii-run", "-n", "1", "--"};
  const Words lab = command({"torus", "2"}, {helper("join_rank"), "gather"});
  words.insert(words.end(), lab.begin(), lab.end());
  const Outcome outcome = run(words);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "rank 1: gathered 2")) << outcome.output;
}

TEST_F(Lab, NodesAreKnownByNameInside) {
  std::string output;
  report({"torus", "2"}, {"sh", "-c", "grep node1 /etc/hosts; ip netns exec node1 ip -brief address show node"},
         &output);
  EXPECT_TRUE(holds(output, "10.80.0.2 node1")) << output;
  EXPECT_TRUE(holds(output, "10.80.0.2/32 10.81.0.2/32")) << output;
}

TEST_F(Lab, PicturesAreWritten) {
  const Outcome outcome = run(command({"torus", "2x2", "--svg", path("loads.svg")}, {"true"}));
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  std::ifstream file(path("loads.svg"));
  const std::string svg{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n")) << svg;
}

TEST_F(Lab, APlanIsComparedOnStdoutWithoutFiles) {
  const Words job{helper("join_rank"), "gather"};
  const Outcome outcome = run(command({"torus", "2", "--plan", "allreduce:ring:4K"}, job));
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "allreduce of 4096 bytes by ring: the bytes of all links")) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "\n   0    1     xm           2048 ")) << outcome.output;
  const Outcome in_file = run(command({"torus", "2", "--plan", "allreduce:ring:4K", "--json", path("plan")}, job));
  EXPECT_FALSE(holds(in_file.output, "the bytes of all links")) << in_file.output;
}

TEST_F(Lab, OpenMpiStartsRanksOnTheNodes) {
  if (run({"sh", "-c", "command -v mpirun.openmpi"}).code != 0) GTEST_SKIP() << "mpirun.openmpi is not installed";
  const Outcome outcome =
      run(command({"torus", "2x2", "--open-mpi", "--rate", "200"}, {"cat", "/proc/sys/kernel/hostname"}));
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  for (int node = 0; node < 4; ++node) {
    EXPECT_TRUE(holds(outcome.output, "node" + std::to_string(node) + "\n")) << outcome.output;
  }
  const Outcome failed = run(command({"torus", "2", "--open-mpi"}, {"false"}));
  EXPECT_NE(failed.code, 0);
  EXPECT_FALSE(holds(failed.output, "replaced by")) << failed.output;
}

}  // namespace
}  // namespace torii::tests
