// SPDX-License-Identifier: Apache-2.0
// Which resources of UCX belong to a word, an interface or an address, and with which settings UCX opens them.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "tests/fabric/refusal.hpp"
#include "tests/support/folder_test.hpp"
#include "transports/network/environment.hpp"
#include "transports/ucx/config.hpp"
#include "transports/ucx/resources.hpp"

namespace torii::ucx {
namespace {

TEST(Resources, WordsOfTheListNameThem) {
  const Resource tcp{"tcp", "tcp", "eth0", true, {}};
  const Resource rc{"ib", "rc_mlx5", "mlx5_0:1", true, {}};
  const Resource ud{"ib", "ud_verbs", "mlx5_0:1", true, {}};
  EXPECT_TRUE(is_of(tcp, "tcp"));
  EXPECT_FALSE(is_of(tcp, "ib"));
  for (const char* const word : {"ib", "rc", "rc_x", "rc_mlx5"}) EXPECT_TRUE(is_of(rc, word)) << word;
  for (const char* const word : {"ud", "rc_v", "tcp", ""}) EXPECT_FALSE(is_of(rc, word)) << word;
  EXPECT_TRUE(is_of(ud, "ud_v"));
  EXPECT_FALSE(is_of(ud, "ud_x"));
}

/// A made-up /sys.
class Ports : public tests::FolderTest {
 protected:
  void write_lines(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((folder_ / file).parent_path());
    write(file, text + "\n");
  }
  /// One address of a port; those of InfiniBand name no interface.
  void add_address(const std::string& port, const std::string& number, const std::string& interface) const {
    write_lines(std::filesystem::path("class/infiniband") / port / "gid_attrs/ndevs" / number, interface);
  }
  bool holds_up(const std::string& port, const std::string& interface) const {
    return stands_on({"ib", "rc_verbs", port, true, {}}, interface, folder_);
  }
};

TEST_F(Ports, OfAnAdapterThatMadeTheInterfaces) {
  for (const char* const interface : {"ib0", "ib1"}) {
    std::filesystem::create_directories(folder_ / "class/infiniband/mlx5_0/device/net" / interface);
    write_lines(std::string("class/net/") + interface + "/dev_port", std::string(1, interface[2]));
  }
  EXPECT_TRUE(holds_up("mlx5_0:1", "ib0"));
  EXPECT_FALSE(holds_up("mlx5_0:1", "ib1"));
  EXPECT_TRUE(holds_up("mlx5_0:2", "ib1"));
  EXPECT_FALSE(holds_up("mlx5_1:1", "ib0"));
  EXPECT_FALSE(holds_up("mlx5_0:1", "eth0"));
  EXPECT_TRUE(stands_on({"tcp", "tcp", "ib1", true, {}}, "ib1", folder_));
  EXPECT_EQ(interface_of("127.0.0.1"), "lo");
  EXPECT_EQ(interface_of("203.0.113.77"), "");
}

/// A device of software has no adapter; nor has a VLAN or a bond, which an adapter's driver has not made.
TEST_F(Ports, WithAddressesOfTheInterfaces) {
  add_address("rxe0/ports/1", "0", "eth0");
  add_address("mlx5_0/ports/1", "0", "eth1");
  add_address("mlx5_0/ports/1", "1", "eth1.5");
  add_address("mlx5_0/ports/2", "0", "eth2");
  add_address("mlx5_bond_0/ports/1", "12", "bond0");
  EXPECT_TRUE(holds_up("rxe0:1", "eth0"));
  EXPECT_FALSE(holds_up("rxe0:1", "eth1"));
  EXPECT_FALSE(holds_up("rxe0:2", "eth0"));
  EXPECT_TRUE(holds_up("mlx5_0:1", "eth1"));
  EXPECT_TRUE(holds_up("mlx5_0:1", "eth1.5"));
  EXPECT_FALSE(holds_up("mlx5_0:1", "eth2"));
  EXPECT_TRUE(holds_up("mlx5_0:2", "eth2"));
  EXPECT_FALSE(holds_up("mlx5_0:2", "eth1.5"));
  EXPECT_TRUE(holds_up("mlx5_bond_0:1", "bond0"));
  EXPECT_FALSE(holds_up("mlx5_bond_0:1", "bond"));
}

/// The kernel refuses to read the entries of no address. So does a folder.
TEST_F(Ports, WithEntriesThatNobodyCanRead) {
  for (const char* const number : {"0", "2"}) {
    std::filesystem::create_directories(folder_ / "class/infiniband/rxe0/ports/1/gid_attrs/ndevs" / number);
  }
  EXPECT_FALSE(holds_up("rxe0:1", "eth0"));
  add_address("rxe0/ports/1", "1", "eth0");
  EXPECT_TRUE(holds_up("rxe0:1", "eth0"));
}

TEST_F(Ports, NumberTheirAddresses) {
  const auto add = [&](const std::string& number, const std::string& gid, const std::string& type) {
    write_lines("class/infiniband/rxe0/ports/1/gids/" + number, gid);
    write_lines("class/infiniband/rxe0/ports/1/gid_attrs/types/" + number, type);
  };
  add("0", "fe80:0000:0000:0000:101e:aaff:fe2e:714f", "RoCE v2");
  add("1", "0000:0000:0000:0000:0000:ffff:0a09:0001", "IB/RoCE v1");
  add("2", "0000:0000:0000:0000:0000:ffff:0a09:0001", "RoCE v2");
  add("11", "fd00:0000:0000:0000:0000:0000:0000:00c1", "RoCE v2");
  EXPECT_EQ(gid_index("rxe0:1", "10.9.0.1", folder_), "2");
  EXPECT_EQ(gid_index("rxe0:1", "fd00::c1", folder_), "11");
  EXPECT_EQ(gid_index("rxe0:1", "10.9.0.2", folder_), "");
  EXPECT_EQ(gid_index("rxe0:2", "10.9.0.1", folder_), "");
  EXPECT_EQ(gid_index("eth0", "10.9.0.1", folder_), "");
}

/// The settings of a configuration with puts, as UCX prints them.
std::string settings_of(const Selection& selection) {
  const Config config = make_config(selection, true);
  char* text = nullptr;
  std::size_t bytes = 0;
  std::FILE* const file = open_memstream(&text, &bytes);
  ucp_config_print(config.get(), file, "", UCS_CONFIG_PRINT_CONFIG);
  std::fclose(file);
  const std::unique_ptr<char, decltype(&std::free)> owner(text, &std::free);
  return {text, bytes};
}

/// Whether UCX takes them on a device is seen only where there is one.
TEST(UcxConfig, HasWhatTheDevicesNeedUnlessTheUserHasSetIt) {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  ucp_get_version(&major, &minor, &release);
  Selection selection{.transports = "rc",
                      .devices = "rxe0:1",
                      .components = {"ib"},
                      .is_plain_verbs = true,
                      .gid_index = "3",
                      .abilities = {}};
  const bool is_old = major == 1 && minor < 19;
  const std::string all = settings_of(selection);
  tests::expect_holds(all, "NET_DEVICES=rxe0:1\n");
  const std::string domain = major == 1 && minor < 17 ? "\n" : "\nIB_";
  tests::expect_holds(all, domain + "PCI_RELAXED_ORDERING=no\n");
  tests::expect_holds(all, domain + "GID_INDEX=3\n");
  tests::expect_holds(all, domain + "ASYNC_EVENTS=no\n");
  tests::expect_holds(all, "\nRC_TIMEOUT=500ms\n");
  tests::expect_holds(all, "\nUCX_PROTO_ENABLE=n\n");
  EXPECT_EQ(all.find("ETH_DGID_CHECK=no\n") != std::string::npos, is_old) << all;
  {
    const transports::EnvironmentMeanwhile user({{"UCX_IB_GID_INDEX", "1"},
                                                 {"UCX_UD_VERBS_ETH_DGID_CHECK", "yes"},
                                                 {"UCX_IB_ASYNC_EVENTS", "yes"},
                                                 {"UCX_RC_TIMEOUT", "2s"},
                                                 {"UCX_PROTO_ENABLE", "y"}});
    const std::string rest = settings_of(selection);
    tests::expect_holds(rest, "\nUCX_PROTO_ENABLE=y\n");
    EXPECT_EQ(rest.find("GID_INDEX"), std::string::npos) << rest;
    EXPECT_EQ(rest.find("DGID_CHECK"), std::string::npos) << rest;
    EXPECT_EQ(rest.find("ASYNC_EVENTS"), std::string::npos) << rest;
    EXPECT_EQ(rest.find("RC_TIMEOUT"), std::string::npos) << rest;
  }
  selection.is_plain_verbs = false;
  selection.gid_index.clear();
  const std::string less = settings_of(selection);
  EXPECT_EQ(less.find("GID_INDEX"), std::string::npos) << less;
  EXPECT_EQ(less.find("DGID_CHECK"), std::string::npos) << less;
  EXPECT_EQ(less.find("ASYNC_EVENTS"), std::string::npos) << less;
  EXPECT_EQ(less.find("RC_TIMEOUT"), std::string::npos) << less;
}

}  // namespace
}  // namespace torii::ucx
