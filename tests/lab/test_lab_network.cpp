// SPDX-License-Identifier: Apache-2.0
// The laboratory as data: cables, routes in dimension order, bad input, the report.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "runtime/topology/routing.hpp"
#include "tests/lab/refusal.hpp"
#include "tests/support/places.hpp"
#include "tools/torii-lab/network.hpp"
#include "tools/torii-lab/report.hpp"

namespace torii::tools {
namespace {

using tests::refusal;

const LabDevice* device_of(const LabNode& node, const std::string& name) {
  const auto found = std::ranges::find(node.devices, name, &LabDevice::name);
  return found == node.devices.end() ? nullptr : &*found;
}

/// The nodes that a packet from `from` to an address passes, by the routes of each node.
std::vector<int> way_of(const LabNetwork& network, int from, const std::string& address) {
  std::vector<int> way;
  for (int at = from; way.size() < network.nodes.size();) {
    const LabNode& here = network.nodes[static_cast<std::size_t>(at)];
    if (std::ranges::find(here.addresses, address) != here.addresses.end()) return way;
    const auto route = std::ranges::find(here.routes, address, &LabRoute::to);
    if (route == here.routes.end()) return {};
    const LabDevice* const device = device_of(here, route->device);
    way.push_back(6 * at + static_cast<int>(std::string("xpxmypymzpzm").find(device->name)) / 2);
    at = device->peer;
    // The neighbour must own the address that the route goes by.
    const auto& addresses = network.nodes[static_cast<std::size_t>(at)].addresses;
    EXPECT_NE(std::ranges::find(addresses, route->via), addresses.end());
  }
  return way;
}

TEST(LabNetwork, NodesHaveASecondAddressWherePacketsMayGoBothWaysRound) {
  const auto addresses = [](const char* kind, const char* extents) {
    return torus_network(kind, extents, 50).nodes[0].addresses;
  };
  const std::vector<std::string> one = {"10.80.0.1"};
  const std::vector<std::string> two = {"10.80.0.1", "10.81.0.1"};
  EXPECT_EQ(addresses("torus", "3x3x3"), one);
  EXPECT_EQ(addresses("torus", "5"), one);
  EXPECT_EQ(addresses("mesh", "4x4"), one);
  EXPECT_EQ(addresses("torus", "3x4m"), one);
  EXPECT_EQ(addresses("torus", "4x4"), two);
  EXPECT_EQ(addresses("torus", "3x2"), two);
}

TEST(LabNetwork, RoutesAreThoseOfRouting) {
  for (const auto& [kind, extents, ranks] :
       {std::tuple("torus", "3x3", 9), std::tuple("torus", "4x4", 16), std::tuple("torus", "2x2", 4),
        std::tuple("torus", "2x3x4", 24), std::tuple("torus", "4x3m", 12), std::tuple("mesh", "3x4", 12),
        std::tuple("torus", "5", 5)}) {
    const LabNetwork network = torus_network(kind, extents, 50);
    const Topology topology = Topology::parse(std::string(kind) + ":" + extents, ranks);
    ASSERT_EQ(network.nodes.size(), static_cast<std::size_t>(ranks));
    for (int from = 0; from < ranks; ++from) {
      for (int to = 0; to < ranks; ++to) {
        const auto& addresses = network.nodes[static_cast<std::size_t>(to)].addresses;
        for (std::size_t turn = 0; turn < 2; ++turn) {
          std::vector<LinkId> expected;
          append_route(topology, from, to, static_cast<int>(turn), expected);
          const std::string& address = addresses[turn % addresses.size()];
          EXPECT_EQ(way_of(network, from, address), expected) << network.text << ": " << from << " to " << address;
        }
      }
    }
  }
}

TEST(LabNetwork, AnExtentOf2HasTwoCablesInATorusAndOneInAMesh) {
  const LabNetwork torus = torus_network("torus", "2x2", 50);
  for (const LabNode& node : torus.nodes) EXPECT_EQ(node.devices.size(), 4u);
  EXPECT_EQ(torus.nodes[0].devices[0].peer, 1);
  EXPECT_EQ(torus.nodes[0].devices[0].peer_device, "xm");
  EXPECT_EQ(torus.nodes[0].devices[1].peer, 1);
  EXPECT_EQ(torus.nodes[0].devices[1].peer_device, "xp");
  const LabNetwork mesh = torus_network("mesh", "2x2", 50);
  for (const LabNode& node : mesh.nodes) EXPECT_EQ(node.devices.size(), 2u);
  const auto cables = [](const LabNetwork& network) {
    const std::vector<std::string> paths(network.nodes.size(), "ns");
    const std::string commands = cable_commands(network, paths);
    return std::ranges::count(commands, '\n');
  };
  EXPECT_EQ(cables(torus), 8);
  EXPECT_EQ(cables(mesh), 4);
  EXPECT_EQ(cables(rails_network(3, 50)), 3);
}

TEST(LabNetwork, BadInputIsNamed) {
  EXPECT_NE(refusal([] { torus_network("torus", "3xx", 50); }).find("'torus:3xx'"), std::string::npos);
  EXPECT_NE(refusal([] { torus_network("torus", "3xq", 50); }).find("'q'"), std::string::npos);
  EXPECT_NE(refusal([] { torus_network("torus", "4x4,ties", 50); }).find("leave ',ties' out"), std::string::npos);
  EXPECT_NE(refusal([] { torus_network("torus", "2x2*2", 50); }).find("leave the star out"), std::string::npos);
  EXPECT_NE(refusal([] { torus_network("torus", "1", 50); }).find("has 1 nodes; a laboratory has 2 to 64"),
            std::string::npos);
  EXPECT_NE(refusal([] { torus_network("torus", "9x9", 50); }).find("has 81 nodes"), std::string::npos);
  LabNetwork network = torus_network("torus", "3x3", 50);
  for (const char* const text :
       {"", "0", "0:xp", "xp=5", "x:xp=5", "0:xp=", "0:xp=-1", "0:xp=nan", "0:xp=5e9", "0=5:xp"}) {
    EXPECT_NE(refusal([&] { set_rate(network, text); }).find("write NODE:DEVICE=MBIT"), std::string::npos) << text;
  }
  EXPECT_NE(refusal([&] { set_rate(network, "9:xp=5"); }).find("there is no node 9; the last is 8"), std::string::npos);
  EXPECT_NE(refusal([&] { set_rate(network, "0:zp=5"); }).find("no device 'zp'; it has xp xm yp ym"),
            std::string::npos);
  set_rate(network, "4:ym=2.5");
  EXPECT_EQ(device_of(network.nodes[4], "ym")->rate_mbit, 2.5);
  EXPECT_NE(rate_commands(network.nodes[4]).find("dev ym root tbf rate 2500000bit"), std::string::npos);
}

TEST(LabReport, HoldsEveryLink) {
  const LabNetwork network = torus_network("torus", "2x3", 50);
  LabReport report;
  report.network = &network;
  report.command = {"program", "a<b"};
  report.seconds = 2;
  for (const LabNode& node : network.nodes) report.loads.emplace_back(node.devices.size(), LinkCount{100, 1});
  report.loads[5][3] = {6'250'000, 500};
  const auto json = nlohmann::json::parse(report_json(report));
  ASSERT_EQ(json["links"].size(), 24u);
  EXPECT_EQ(json["bytes"], 6'250'000 + 23 * 100);
  EXPECT_EQ(json["bytes_most"], 6'250'000);
  EXPECT_EQ(json["links"][23]["from"], 5);
  EXPECT_EQ(json["links"][23]["device"], "ym");
  EXPECT_EQ(json["links"][23]["share"], 0.5);
  const std::string svg = report_svg(report);
  std::size_t lines = 0;
  for (std::size_t at = svg.find("<line"); at != std::string::npos; at = svg.find("<line", at + 1)) ++lines;
  EXPECT_EQ(lines, 24u);
  EXPECT_NE(svg.find("5 ym to 3: 6250000 bytes, 500 packets, 50.0 % of 50 Mbit/s"), std::string::npos);
  EXPECT_NE(svg.find("a&lt;b"), std::string::npos);
}

/// A long command takes several lines, none of which leaves the picture, and the rest moves down.
TEST(LabReport, TitlesFitThePicture) {
  const LabNetwork network = torus_network("torus", "3x3", 50);
  LabReport report;
  report.network = &network;
  report.seconds = 1;
  for (const LabNode& node : network.nodes) report.loads.emplace_back(node.devices.size(), LinkCount{100, 1});
  const auto picture = [&](std::vector<std::string> command) {
    report.command = std::move(command);
    return report_svg(report);
  };
  const auto height = [](const std::string& svg) { return std::stod(svg.substr(svg.find(" height=\"") + 9)); };
  const std::string brief = picture({"program"});
  const std::string svg = picture({"all_reduce_perf", "-b", "4M", "-e", "4M", "-n", "5", "-w", "1", "--topology",
                                   "torus:3x3", "--algorithm", "bucket", std::string(150, 'x')});
  const double width = std::stod(svg.substr(svg.find(" width=\"") + 8));
  int lines = 0;
  std::string words;
  for (std::size_t at = svg.find("<text x=\"16.0\""); at != std::string::npos;
       at = svg.find("<text x=\"16.0\"", at + 1)) {
    const std::size_t begin = svg.find('>', at) + 1;
    const std::string line = svg.substr(begin, svg.find('<', begin) - begin);
    EXPECT_LE(16 + 7.2 * static_cast<double>(line.size()), width) << line;
    words += line + " ";
    ++lines;
  }
  EXPECT_GE(lines, 5);
  EXPECT_NE(words.find("--algorithm bucket xxx"), std::string::npos) << words;
  EXPECT_EQ(height(svg), height(brief) + 16 * (lines - 2));
}

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The saved pictures of loads are those that the saved figures beside them give.
TEST(LabReport, SavedPicturesShowTheSavedLoads) {
  int pictures = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(std::filesystem::path(tests::source_dir()) / "perf" / "results")) {
    std::filesystem::path path = file.path();
    if (path.extension() != ".json" || path.string().find("-lab-") == std::string::npos) continue;
    const auto json = nlohmann::json::parse(content(path));
    const std::string text = json["network"];
    ASSERT_TRUE(text.starts_with("torus ")) << path;
    const LabNetwork network = torus_network("torus", text.substr(6), json["links"][0]["rate_mbit"].get<double>());
    LabReport report;
    report.network = &network;
    report.command = json["command"].get<std::vector<std::string>>();
    report.seconds = json["seconds"];
    for (const LabNode& node : network.nodes) report.loads.emplace_back(node.devices.size());
    std::vector<std::size_t> devices(network.nodes.size());
    for (const auto& link : json["links"]) {
      const std::size_t node = link["from"];
      report.loads[node][devices[node]++] = {link["bytes"], link["packets"]};
    }
    path.replace_extension(".svg");
    const std::filesystem::path drawn = std::filesystem::path(testing::TempDir()) / path.filename();
    const std::string svg = report_svg(report);
    const bool same = svg == content(path);
    EXPECT_TRUE(same) << path << " is out of date; drawn again: " << drawn;
    if (!same) std::ofstream(drawn) << svg;
    ++pictures;
  }
  EXPECT_GE(pictures, 1);
}

TEST(LabReport, LoadsAreDifferences) {
  const auto loads = loads_between({{{10, 1}}, {{20, 2}}}, {{{15, 4}}, {{20, 2}}});
  EXPECT_EQ(loads[0][0].bytes, 5u);
  EXPECT_EQ(loads[0][0].packets, 3u);
  EXPECT_EQ(loads[1][0].bytes, 0u);
}

/// The bytes that an allreduce of `bytes` needs in all, whatever the algorithm, are 2 (P - 1) bytes over one link each.
TEST(LabPrediction, KnowsWhatEachLinkCarries) {
  constexpr double kBytes = 1 << 20;
  const LabNetwork torus = torus_network("torus", "3x3", 50);
  const LabPrediction bucket = predict(torus, "allreduce:bucket:1M");
  EXPECT_EQ(bucket.text, "allreduce of 1048576 bytes by bucket");
  double all = 0;
  for (const auto& node : bucket.bytes) {
    for (const std::uint64_t bytes : node) {
      // Four rings through every node: each link has the same part, but for whole granules.
      EXPECT_NEAR(static_cast<double>(bytes), 2 * 8 * kBytes / 36, 0.1 * kBytes);
      all += static_cast<double>(bytes);
    }
  }
  EXPECT_NEAR(all, 2 * 8 * kBytes, 1);
  // A chain of four nodes: up to node 0 and down again, over each cable once in each direction.
  const LabPrediction chain = predict(torus_network("mesh", "4", 50), "allreduce:trinaryx3:64K");
  for (const auto& node : chain.bytes) EXPECT_EQ(node, std::vector<std::uint64_t>(node.size(), 65536));
}

/// Two cables of an extent of 2, and the two ways half round an extent of 4, get half the bytes each.
TEST(LabPrediction, DividesBytesBetweenTwoWays) {
  constexpr double kBytes = 1 << 20;
  for (const char* const extents : {"2", "2x2", "2x2x2", "3x2"}) {
    const LabNetwork network = torus_network("torus", extents, 50);
    const LabPrediction plan = predict(network, "allreduce:trinaryx3:1M");
    double all = 0;
    for (std::size_t node = 0; node < plan.bytes.size(); ++node) {
      const std::vector<LabDevice>& devices = network.nodes[node].devices;
      for (std::size_t one = 0; one < devices.size(); one += 2) {
        all += static_cast<double>(plan.bytes[node][one] + plan.bytes[node][one + 1]);
        if (devices[one].peer != devices[one + 1].peer) continue;  // an extent of 3
        EXPECT_GT(plan.bytes[node][one], 0u) << extents << ", node " << node;
        EXPECT_EQ(plan.bytes[node][one] - plan.bytes[node][one + 1], plan.bytes[node][one] % 2) << extents;
      }
    }
    EXPECT_NEAR(all, 2 * (network.ranks - 1) * kBytes, 1) << extents;
  }
  // From node 0 to node 2 of a ring of four.
  const LabNetwork ring = torus_network("torus", "4", 50);
  const LabPrediction tree = predict(ring, "broadcast:binomial:1M");
  const auto sent = [&](std::size_t node, const std::string& device) {
    return tree
        .bytes[node][static_cast<std::size_t>(device_of(ring.nodes[node], device) - ring.nodes[node].devices.data())];
  };
  EXPECT_EQ(sent(0, "xp") + sent(0, "xm"), 2u << 20);
  EXPECT_EQ(sent(3, "xm"), 1u << 19);
  EXPECT_EQ(sent(1, "xp"), 1u << 19);
  // One cable has all.
  const LabPrediction mesh = predict(torus_network("mesh", "2", 50), "broadcast:ring:1M");
  EXPECT_EQ(mesh.bytes, (std::vector<std::vector<std::uint64_t>>{{1 << 20}, {0}}));
}

TEST(LabPrediction, NamesWhatIsWrong) {
  const LabNetwork torus = torus_network("torus", "3x3", 50);
  const auto says = [&](const LabNetwork& network, const std::string& what, const std::string& part) {
    const std::string text = refusal([&] { (void)predict(network, what); });
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  says(torus, "allreduce:bucket", "plan 'allreduce:bucket': it does not have two colons");
  says(torus, "alltoall:direct:1M", "'alltoall' is none of allreduce, broadcast, reduce");
  says(torus, "allreduce:fastest:1M", "no algorithm is called 'fastest'");
  says(torus, "allreduce:bucket:much", "'much' is no number of bytes");
  says(rails_network(2, 50), "allreduce:bucket:1M", "a plan's links are those of a torus or mesh");
}

TEST(LabPrediction, StandsBesideTheCounters) {
  const LabNetwork pair = torus_network("mesh", "2", 50);
  LabReport report;
  report.network = &pair;
  report.seconds = 1;
  report.prediction = LabPrediction{"a plan", {{1000}, {3000}}};
  report.loads = {{{2400, 10}}, {{5600, 20}}};
  const auto json = nlohmann::json::parse(report_json(report));
  EXPECT_EQ(json["plan"], "a plan");
  EXPECT_DOUBLE_EQ(json["plan_calls"], 2);
  EXPECT_EQ(json["links"][0]["plan_bytes"], 1000);
  EXPECT_DOUBLE_EQ(json["links"][0]["of_plan"], 1.2);
  EXPECT_NE(report_svg(report).find("120.0 % of the plan"), std::string::npos);
  const std::string table = report_plan(report);
  EXPECT_NE(table.find("a plan: the bytes of all links are those of 2 calls"), std::string::npos) << table;
  EXPECT_NE(table.find("   1    0     xm           3000           5600      93.3\n"), std::string::npos) << table;
  report.prediction->bytes[0][0] = 0;
  EXPECT_NE(report_plan(report).find("         -\n"), std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(report_json(report))["links"][0]["of_plan"].is_null());
  EXPECT_NE(report_svg(report).find("none of it planned"), std::string::npos);
}

}  // namespace
}  // namespace torii::tools
