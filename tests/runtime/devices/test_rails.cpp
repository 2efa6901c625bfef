// SPDX-License-Identifier: Apache-2.0
// Which device each engine goes through: near ones, fast ones, and networks that all ranks share; addresses and their
// networks; devices as hwloc finds them on a planted machine.
#include <gtest/gtest.h>

#include <arpa/inet.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "runtime/base/status.hpp"
#include "runtime/devices/address.hpp"
#include "runtime/devices/nics.hpp"
#include "runtime/devices/rails.hpp"
#include "tests/support/places.hpp"
#include "tests/support/test_run.hpp"

namespace torii {
namespace {

using Indices = std::vector<std::size_t>;

Interface interface(const std::string& name, const std::string& address, const std::string& mask) {
  return {name, Address::parse(address, 0), mask.empty() ? Address() : Address::parse(mask, 0)};
}

std::vector<std::string> hosts_of(const std::vector<Interface>& interfaces) {
  std::vector<std::string> hosts;
  for (const Interface& one : interfaces) hosts.push_back(one.address.host());
  return hosts;
}

TEST(PreferredNics, AreThoseNearTheRank) {
  const std::vector<Nic> nics = {{"a", {0, 1}, 100e3}, {"b", {2, 3}, 100e3}, {"c", {0, 1}, 100e3}};
  EXPECT_EQ(preferred_nics(nics, {0}), (Indices{0, 2}));
  EXPECT_EQ(preferred_nics(nics, {3, 7}), (Indices{1}));
  EXPECT_EQ(preferred_nics(nics, {1, 2}), (Indices{0, 1, 2})) << "a rank on both sides";
  EXPECT_EQ(preferred_nics(nics, {9}), (Indices{0, 1, 2})) << "none is near";
  EXPECT_EQ(preferred_nics(nics, {}), (Indices{0, 1, 2}));
  EXPECT_EQ(preferred_nics({}, {0}), (Indices{}));
}

TEST(PreferredNics, AreFast) {
  const std::vector<Nic> nics = {{"slow", {0}, 1e3}, {"fast", {4}, 100e3}, {"half", {4}, 50e3}, {"dark", {}, 0}};
  EXPECT_EQ(preferred_nics(nics, {0}), (Indices{1, 2, 3})) << "a slow one nearby is no substitute";
  EXPECT_EQ(preferred_nics(nics, {4}), (Indices{1, 2}));
}

TEST(PreferredSources, StayWithTheFirstUnlessBothArePhysical) {
  const std::vector<RailSource> sources = {
      {"10.0.0.1", "10.0.0.0/24", "eth0"}, {"10.0.1.1", "10.0.1.0/24", "eth1"}, {"172.17.0.1", "172.17.0.0/16", "br0"}};
  const std::vector<Nic> nics = {{"eth0", {0}, 10e3}, {"eth1", {0}, 10e3}};
  EXPECT_EQ(preferred_sources(sources, nics, {0}, false), (Indices{0, 1}));
  EXPECT_EQ(preferred_sources(sources, nics, {0}, true), (Indices{0, 1, 2}));
  EXPECT_EQ(preferred_sources({sources[2], sources[0]}, nics, {0}, false), (Indices{0}));
  EXPECT_EQ(preferred_sources(sources, {}, {0}, false), (Indices{0}));
  EXPECT_EQ(preferred_sources({}, nics, {0}, false), (Indices{}));
  const std::vector<Nic> unequal = {{"eth0", {0}, 1e3}, {"eth1", {0}, 100e3}};
  EXPECT_EQ(preferred_sources(sources, unequal, {0}, false), (Indices{1}));
  EXPECT_EQ(preferred_sources(sources, unequal, {0}, true), (Indices{0, 1, 2})) << "named interfaces all serve";
}

TEST(PreferredSources, OfOneNetworkAreThoseNearTheRank) {
  const std::vector<RailSource> sources = {{"10.0.0.1", "10.0.0.0/24", "ib0"}, {"10.0.0.2", "10.0.0.0/24", "ib1"}};
  const std::vector<Nic> nics = {{"ib0", {0, 1}, 100e3}, {"ib1", {2, 3}, 100e3}};
  for (const bool named : {false, true}) {
    EXPECT_EQ(preferred_sources(sources, nics, {0, 1}, named), (Indices{0}));
    EXPECT_EQ(preferred_sources(sources, nics, {2, 3}, named), (Indices{1}));
    EXPECT_EQ(preferred_sources(sources, nics, {0, 1, 2, 3}, named), (Indices{0, 1}));
  }
}

TEST(EngineRails, MeetInTheSameNetwork) {
  const std::vector<RankRails> ranks = {{"a", {{"n0", "a0"}, {"n1", "a1"}, {"n2", "a2"}}},
                                        {"b", {{"n2", "b2"}, {"n1", "b1"}, {"n0", "b0"}}}};
  EXPECT_EQ(engine_rails(ranks, 0, 4), (Indices{0, 1, 2, 0}));
  EXPECT_EQ(engine_rails(ranks, 1, 4), (Indices{2, 1, 0, 2})) << "rank 0's order holds";
  EXPECT_EQ(engine_rails(ranks, 1, 1), (Indices{2}));
}

TEST(EngineRails, UseOnlyWhatAllRanksHave) {
  const std::vector<RankRails> ranks = {
      {"a", {{"n0", "a0"}, {"n1", "a1"}}}, {"b", {{"n1", "b1"}, {"n7", "b7"}}}, {"c", {{"n0", "c0"}, {"n1", "c1"}}}};
  EXPECT_EQ(engine_rails(ranks, 0, 2), (Indices{1, 1}));
  EXPECT_EQ(engine_rails(ranks, 1, 2), (Indices{0, 0}));
  EXPECT_EQ(engine_rails({{"a", {{"n0", "a0"}}}, {"b", {{"n1", "b1"}}}}, 0, 2), (Indices{}));
  EXPECT_EQ(engine_rails({{"a", {{"n0", "a0"}}}, {"b", {}}}, 1, 2), (Indices{}));
}

TEST(EngineRails, LeaveOutBridgesThatEveryHostHasForItself) {
  const std::vector<RankRails> ranks = {{"a", {{"bridge", "172.17.0.1"}, {"n", "10.0.0.1"}}},
                                        {"b", {{"bridge", "172.17.0.1"}, {"n", "10.0.0.2"}}}};
  EXPECT_EQ(engine_rails(ranks, 0, 2), (Indices{1, 1}));
  // Ranks of one host have the same addresses, and reach each other there.
  const std::vector<RankRails> one_host = {ranks[0], ranks[0]};
  EXPECT_EQ(engine_rails(one_host, 1, 2), (Indices{0, 1}));
}

TEST(EngineRails, SpreadRanksOfAHostOverItsDevices) {
  const RankRails left{"a", {{"", "mlx5_0"}, {"", "mlx5_1"}}};
  const RankRails right{"a", {{"", "mlx5_2"}, {"", "mlx5_3"}}};
  const RankRails other{"b", {{"", "mlx5_0"}, {"", "mlx5_1"}}};
  const std::vector<RankRails> ranks = {left, right, left, right, other};
  EXPECT_EQ(engine_rails(ranks, 0, 1), (Indices{0}));
  EXPECT_EQ(engine_rails(ranks, 2, 1), (Indices{1})) << "the second rank with these devices takes the next";
  EXPECT_EQ(engine_rails(ranks, 3, 1), (Indices{1}));
  EXPECT_EQ(engine_rails(ranks, 4, 1), (Indices{0})) << "the same names on another host are other devices";
  EXPECT_EQ(engine_rails(ranks, 2, 3), (Indices{1, 0, 1})) << "three engines of rank 0 come before";
  EXPECT_EQ(engine_rails(ranks, 0, 4), (Indices{0, 1, 0, 1}));
}

TEST(RailsText, ReadsBackWhatItWrites) {
  const RankRails rails{"host.1", {{"", "mlx5_0"}, {"10.0.0.0/24", "10.0.0.1"}}};
  const RankRails back = parse_rails(rails_text(rails));
  EXPECT_EQ(rails_text(back), rails_text(rails));
  ASSERT_EQ(back.rails.size(), 2u);
  EXPECT_EQ(back.rails[0].network, "");
  EXPECT_EQ(back.rails[1].name, "10.0.0.1");
  EXPECT_EQ(parse_rails(rails_text({"", {}})).rails.size(), 0u);
}

TEST(RailsText, AnyOtherTextGivesNoRails) {
  for (const char* text : {"", "host", "@h @n", "@h @n a", "@h @n @a @n"}) EXPECT_TRUE(parse_rails(text).rails.empty());
  for (const tests::Seed& seed : tests::seeds_of("test_rails", 1)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed.value);
    constexpr char kLetters[] = "@@@ab 0./\n";
    for (int i = 0; i < 20'000; ++i) {
      std::string text(random() % 40, ' ');
      for (char& letter : text) letter = kLetters[random() % (sizeof(kLetters) - 1)];
      const RankRails rails = parse_rails(text);
      EXPECT_EQ(rails_text(parse_rails(rails_text(rails))), rails_text(rails)) << text;
    }
  }
}

TEST(Networks, AreAddressAndMask) {
  EXPECT_EQ(network_of(interface("e", "10.90.3.17", "255.255.255.0")), "10.90.3.0/24");
  EXPECT_EQ(network_of(interface("e", "10.90.3.17", "255.255.240.0")), "10.90.0.0/20");
  EXPECT_EQ(network_of(interface("e", "fd00:1::2", "ffff:ffff::")), "fd00:1::/32");
  EXPECT_EQ(network_of(interface("e", "10.90.3.17", "")), "10.90.3.17");
}

TEST(RailInterfaces, BeginWithTheAddressThatPeersReach) {
  const std::vector<Interface> all = {
      interface("lo", "127.0.0.1", "255.0.0.0"), interface("rail0", "10.90.0.1", "255.255.255.0"),
      interface("rail0", "fd00::1", "ffff:ffff:ffff:ffff::"), interface("rail1", "10.90.1.1", "255.255.255.0")};
  using Hosts = std::vector<std::string>;
  EXPECT_EQ(hosts_of(rail_interfaces("", all, "10.90.1.1")), (Hosts{"10.90.1.1", "10.90.0.1"}));
  EXPECT_EQ(hosts_of(rail_interfaces("", all, "")), (Hosts{"10.90.0.1", "10.90.1.1"}));
  EXPECT_EQ(hosts_of(rail_interfaces("", all, "fd00::1")), (Hosts{"fd00::1"}));
  EXPECT_EQ(hosts_of(rail_interfaces("", all, "127.0.0.1")), (Hosts{"127.0.0.1"}));
  EXPECT_EQ(hosts_of(rail_interfaces("", all, "127.0.0.9")), (Hosts{"127.0.0.9"}));
  EXPECT_EQ(hosts_of(rail_interfaces("rail", all, "127.0.0.1")), (Hosts{"10.90.0.1", "10.90.1.1"}));
  EXPECT_EQ(hosts_of(rail_interfaces("=rail1", all, "10.90.0.1")), (Hosts{"10.90.1.1"}));
  EXPECT_THROW(rail_interfaces("eth", all, ""), Error);
}

/// A machine of two sides with a device on each; states and speeds are planted too.
class PlantedMachine : public testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path source = tests::source_dir();
    const std::string machine = source / "tests/runtime/devices/machines/two_sides.xml";
    ASSERT_EQ(setenv("HWLOC_XMLFILE", machine.c_str(), 1), 0);
    plant("class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE");
    plant("class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)");
    plant("class/infiniband/mlx5_1/ports/1/state", "1: DOWN");
    plant("class/net/ib0/operstate", "up");
    plant("class/net/ib0/speed", "-1");
  }
  void TearDown() override {
    unsetenv("HWLOC_XMLFILE");
    std::filesystem::remove_all(system_);
  }
  void plant(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((system_ / path).parent_path());
    std::ofstream(system_ / path) << text << "\n";
  }
  const MachineNic& named(const std::string& name) {
    found_ = nics_of_machine(system_);
    const auto is_it = [&](const MachineNic& one) { return one.nic.name == name; };
    const auto at = std::ranges::find_if(found_, is_it);
    if (at == found_.end()) throw std::out_of_range(name);
    return *at;
  }

  std::filesystem::path system_ = std::filesystem::path(testing::TempDir()) / "torii_test_planted_system";
  std::vector<MachineNic> found_;
};

TEST_F(PlantedMachine, DevicesHavePlaceStateAndSpeed) {
  const MachineNic left = named("mlx5_0");
  EXPECT_TRUE(left.is_openfabrics);
  EXPECT_TRUE(left.is_up);
  EXPECT_EQ(left.nic.near_cpus, (CpuList{0, 1}));
  EXPECT_EQ(left.numa_nodes, (std::vector<int>{0}));
  EXPECT_EQ(left.nic.mbit_per_s, 100e3);
  const MachineNic right = named("mlx5_1");
  EXPECT_FALSE(right.is_up);
  EXPECT_EQ(right.nic.near_cpus, (CpuList{2, 3}));
  EXPECT_EQ(right.nic.mbit_per_s, 0);
  const MachineNic over_ip = named("ib0");
  EXPECT_FALSE(over_ip.is_openfabrics);
  EXPECT_TRUE(over_ip.is_up);
  EXPECT_EQ(over_ip.nic.mbit_per_s, 0) << "the kernel says -1";
}

TEST_F(PlantedMachine, MissingFilesMeanDownAndUnknown) {
  std::filesystem::remove_all(system_);
  for (const MachineNic& one : nics_of_machine(system_)) {
    EXPECT_FALSE(one.is_up) << one.nic.name;
    EXPECT_EQ(one.nic.mbit_per_s, 0);
  }
  EXPECT_EQ(nics_of_machine(system_).size(), 3u);
}

}  // namespace
}  // namespace torii
