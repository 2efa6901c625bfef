// SPDX-License-Identifier: Apache-2.0
// What torii-info says about planted findings: every check's text, fine and not, the line that lifts each limit, JSON;
// and the devices and rails of its overview.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/places.hpp"
#include "tools/exit_codes.hpp"
#include "tools/torii-info/checks.hpp"
#include "tools/torii-info/doctor.hpp"
#include "tools/torii-info/findings.hpp"
#include "tools/torii-info/rails.hpp"

namespace torii::tools {
namespace {

/// A machine on which nothing is limited.
Findings fine() {
  Findings found;
  found.ranks = 2;
  found.wanted_arena = "64G";
  found.wanted_arena_bytes = found.possible_arena_bytes = std::size_t{64} << 30;
  found.shm_bytes = std::size_t{64} << 20;
  found.numa_nodes = 2;
  found.ptrace_scope = 0;
  found.cpus = found.cpus_allowed = 4;
  found.cpus_text = "0-3";
  found.interfaces.selected = {"eth0 10.0.0.1/24", "eth1 10.0.1.1/24"};
  found.interfaces.names = "lo, eth0, eth1";
  found.ports = {5000, 5003, 4, 3, "10.0.0.1", ""};
  found.nics = {{{"eth0", {0, 1}, 10e3}, false, true, {0}, {"10.0.0.1"}}};
  found.fabrics = {{"libfabric", "", "", {"tcp;ofi_rxm", "net"}, {"efa: no device here offers it"}},
                   {"ucx", "", "", {"tcp"}, {}}};
  return found;
}

Check named(const Findings& found, const std::string& name) {
  for (const Check& check : judge(found)) {
    if (check.name == name) return check;
  }
  throw std::out_of_range(name);
}

void expect(const Findings& found, const std::string& check, State state, const std::string& text,
            const std::string& lift) {
  const Check got = named(found, check);
  EXPECT_EQ(got.state, state) << check << ": " << got.found;
  EXPECT_NE(got.found.find(text), std::string::npos) << check << ": " << got.found;
  EXPECT_EQ(got.lift.empty(), lift.empty()) << check << ": " << got.lift;
  EXPECT_NE(got.lift.find(lift), std::string::npos) << check << ": " << got.lift;
}

TEST(Doctor, NothingToLiftWhereNothingIsLimited) {
  std::set<std::string> names;
  for (const Check& check : judge(fine())) {
    EXPECT_EQ(check.state, State::ok) << check.name << ": " << check.found;
    EXPECT_EQ(check.lift, "") << check.name;
    EXPECT_FALSE(check.found.empty()) << check.name;
    EXPECT_TRUE(names.insert(check.name).second) << check.name << " twice";
  }
  EXPECT_EQ(names.size(), 20u);
  const Report report = doctor(1);
  EXPECT_EQ(report.json.at("checks").size(), names.size()) << "the real machine is judged by the same checks";
}

TEST(Doctor, TuneTablesAreForMachinesLikeTheOneWhereTheyWereMeasured) {
  Findings found = fine();
  expect(found, "tune table", State::ok, "the built-in table does not say where it was measured", "");
  found.tuned_for = found.shape = {4, 1, 2, 2};
  expect(found, "tune table", State::ok,
         "the built-in table was measured on 4 CPUs, 1 third-level cache, 2 NUMA nodes, with up to 2 ranks; so is", "");
  const std::string advice = "torii-info tune --minutes 5 -o tune.json";
  for (const MachineShape& here : {MachineShape{64, 1, 2, 2}, MachineShape{4, 2, 2, 2}, MachineShape{4, 1, 1, 2}}) {
    found.shape = here;
    expect(found, "tune table", State::limit, "another algorithm may be faster", advice);
  }
  found.shape = {4, 1, 2, 3};
  found.tune_file = "mine.json";
  expect(found, "tune table", State::limit, "mine.json was measured on 4 CPUs", advice);
  found.tune_error = "cannot read 'mine.json'";
  expect(found, "tune table", State::blocked, "cannot read 'mine.json'", "unset TORII_TUNE_FILE");
}

TEST(Doctor, Memory) {
  Findings found = fine();
  found.memfd = EPERM;
  expect(found, "memfd_create", State::blocked, "refused: Operation not permitted", "seccomp=unconfined");
  found.wipe_on_fork = EINVAL;
  expect(found, "MADV_WIPEONFORK", State::blocked, "refused: Invalid argument", "Linux 4.14");
  found.wipe_on_fork = ENOMEM;
  expect(found, "MADV_WIPEONFORK", State::blocked, "no page to try it on", "ulimit -v unlimited");
  found.possible_arena_bytes = std::size_t{4} << 30;
  expect(found, "address space", State::limit, "2 arenas of 4096 MiB can be mapped (TORII_ARENA=64G)", "ulimit -v");
  found.possible_arena_bytes = 0;
  found.arena_error = "this process cannot map 2 arenas";
  expect(found, "address space", State::blocked, "cannot map 2 arenas", "or fewer ranks");
  expect(found, "/dev/shm", State::ok, "64 MiB; torii needs none of it", "");
  found.shm_bytes.reset();
  expect(found, "/dev/shm", State::ok, "is not there", "");
  found.overcommit = 2;
  expect(found, "overcommit", State::limit, "mode 2", "sysctl vm.overcommit_memory=0");
  found.commit_memory = MemoryLeft{std::size_t{300} << 20, std::size_t{4} << 30, "the commit limit"};
  expect(found, "overcommit", State::limit, "300 MiB are left of the commit limit of 4096 MiB", "sysctl");
  found.group_memory = MemoryLeft{std::size_t{500} << 20, std::size_t{600} << 20, "the limit of 600"};
  expect(found, "memory group", State::limit, "500 MiB are left of the limit of 600: allocations", "MemoryMax");
  found.group_memory->bytes = std::size_t{512} << 20;
  expect(found, "memory group", State::ok, "512 MiB are left of the limit of 600", "");
  found.overcommit = 1;
  expect(found, "overcommit", State::ok, "mode 1", "");
  found.locked_bytes = 65536;
  expect(found, "memlock", State::limit, "64 KiB", "ulimit -l unlimited");
}

/// The page, the doctor and the image agree.
TEST(Doctor, TheImageGivesNoMemoryToDevShm) {
  std::ifstream file(std::filesystem::path(tests::source_dir()) / "packaging/docker/Dockerfile");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(text.find("need nothing of /dev/shm"), std::string::npos);
  EXPECT_EQ(text.find("--shm-size"), std::string::npos);
}

TEST(Doctor, UserfaultfdAndPlacement) {
  Findings found = fine();
  found.userfaultfd = EPERM;
  expect(found, "userfaultfd", State::limit, "refused", "sysctl vm.unprivileged_userfaultfd=1");
  found.filters_calls = true;
  expect(found, "userfaultfd", State::limit, "refused", "seccomp=unconfined");
  found.userfaultfd = ENOSYS;
  expect(found, "userfaultfd", State::limit, "Function not implemented", "Linux 5.11");
  expect(found, "memory placement", State::ok, "2 NUMA nodes; a rank bound to one of them", "");
  found.place_memory = EPERM;
  expect(found, "memory placement", State::limit, "mbind is refused", "--cap-add SYS_NICE");
  found.numa_nodes = 1;
  expect(found, "memory placement", State::ok, "1 NUMA node: nothing to choose", "");
}

TEST(Doctor, Processes) {
  Findings found = fine();
  found.pidfd = ENOSYS;
  expect(found, "pidfd_open", State::limit, "the end of a peer is seen by locks and connections alone", "Linux 5.3");
  expect(found, "cross-memory", State::ok, "allowed (yama ptrace scope 0)", "");
  found.read_peer = EPERM;
  found.ptrace_scope = 1;
  expect(found, "cross-memory", State::limit, "refused: Operation not permitted (yama ptrace scope 1)",
         "sysctl kernel.yama.ptrace_scope=0");
  found.ptrace_scope.reset();
  found.filters_calls = true;
  expect(found, "cross-memory", State::limit, "(no yama, a seccomp filter)", "--cap-add SYS_PTRACE");
  found.read_peer = ENOSYS;
  expect(found, "cross-memory", State::limit, "Function not implemented", "seccomp=unconfined");
}

TEST(Doctor, CpusAndQuota) {
  Findings found = fine();
  expect(found, "CPUs", State::ok, "4 of 4 CPUs (0-3) for 2 ranks: ranks poll long", "");
  found.ranks = 5;
  expect(found, "CPUs", State::limit, "for 5 ranks: oversubscribed", "fewer ranks, or more machines");
  found.cpus = 8;
  expect(found, "CPUs", State::limit, "4 of 8 CPUs", "--cpuset-cpus");
  expect(found, "CPU quota", State::ok, "none", "");
  found.quota_cpus = 5;
  expect(found, "CPU quota", State::ok, "5 CPUs' worth of time for 5 ranks", "");
  found.quota_cpus = 1.5;
  expect(found, "CPU quota", State::limit, "1.5 CPUs' worth of time for 5 ranks: oversubscribed", "docker run --cpus");
  found.ranks = 1;
  expect(found, "CPU quota", State::ok, "1.5 CPUs' worth of time for 1 rank", "");
}

TEST(Doctor, InterfacesAndPorts) {
  Findings found = fine();
  expect(found, "interfaces", State::ok, "TORII_INTERFACE=auto selects eth0 10.0.0.1/24, eth1 10.0.1.1/24; the first",
         "");
  found.interfaces.only_loopback = true;
  expect(found, "interfaces", State::limit, "other hosts cannot be reached", "--network host");
  found.interfaces.selection = "ib";
  found.interfaces.error = "TORII_INTERFACE is 'ib', which selects none";
  expect(found, "interfaces", State::limit, "selects none", "beginnings of: lo, eth0, eth1");
  found.interfaces = {};
  expect(found, "interfaces", State::limit, "none is up", "ip link set");

  expect(found, "ports", State::ok, "TORII_PORTS=5000-5003: 3 of 4 tried are free on 10.0.0.1", "");
  found.ports.free = 0;
  found.ports.error = "cannot listen on port 5003 of 10.0.0.1";
  expect(found, "ports", State::limit, "0 of 4 tried are free on 10.0.0.1: cannot listen on port 5003", "ss -ltnp");
  found.ports = {0, 0, 1, 1, "10.0.0.1", ""};
  expect(found, "ports", State::ok, "auto, any port; listening on 10.0.0.1 works", "");
  found.ports = {0, 0, 0, 0, "", "no interface is selected"};
  expect(found, "ports", State::limit, "not tried: no interface is selected", "see interfaces");
}

TEST(Doctor, DevicesAndLibraries) {
  Findings found = fine();
  expect(found, "devices", State::ok, "eth0 up 10000 Mbit/s at NUMA node 0", "");
  found.nics.push_back({{"eth1", {}, 0}, false, false, {}, {}});
  expect(found, "devices", State::limit, ", eth1 down", "ip link set eth1 up");
  found.nics = {{{"mlx5_0", {0}, 0}, true, false, {1}, {}}};
  expect(found, "devices", State::limit, "mlx5_0 down at NUMA node 1", "ibstat mlx5_0");
  found.nics.clear();
  expect(found, "devices", State::ok, "no physical network device", "");

  expect(found, "libfabric", State::ok, "auto takes tcp;ofi_rxm; usable too: net; not efa: no device here offers it",
         "");
  found.fabrics[0].usable.clear();
  expect(found, "libfabric", State::limit, "nothing of it is usable", "fi_info");
  found.fabrics[0] = {"libfabric", "the libfabric transport is not there", "apt-get install libfabric1", {}, {}};
  expect(found, "libfabric", State::limit, "is not there", "apt-get install libfabric1");

  expect(found, "ucx", State::ok, "auto takes tcp", "");
  expect(found, "PMIx", State::ok, "no server has started this process", "");
  found.pmix_server = "job.1";
  expect(found, "PMIx", State::ok, "a server has started this process", "");
  found.pmix_error = "cannot open shared object file";
  expect(found, "PMIx", State::limit, "cannot open shared object file", "apt-get install libpmix2");
}

TEST(Doctor, OnlyABlockEndsWithThree) {
  Findings found = fine();
  found.overcommit = 2;
  const Report limited = report_checks(found.ranks, judge(found));
  EXPECT_EQ(limited.code, 0);
  EXPECT_TRUE(limited.json.at("possible").get<bool>());
  EXPECT_EQ(limited.json.at("ranks"), 2);
  EXPECT_NE(limited.text.find("overcommit       limit    mode 2"), std::string::npos) << limited.text;
  EXPECT_NE(limited.text.find("to lift it: sysctl vm.overcommit_memory=0\n"), std::string::npos) << limited.text;
  EXPECT_NE(limited.text.find("shared_memory can work here\n"), std::string::npos);
  found.memfd = ENOSYS;
  const Report blocked = report_checks(found.ranks, judge(found));
  EXPECT_EQ(blocked.code, kNotPossible);
  EXPECT_FALSE(blocked.json.at("possible").get<bool>());
  EXPECT_EQ(blocked.json.at("checks")[0].at("state"), "blocked");
  EXPECT_NE(blocked.text.find("shared_memory cannot work here\n"), std::string::npos);
}

const std::vector<MachineNic> kTwoSides = {{{"eth0", {0, 1}, 10e3}, false, true, {0}, {"10.0.0.1"}},
                                           {{"eth1", {2, 3}, 10e3}, false, true, {1}, {"10.0.1.1"}},
                                           {{"mlx5_0", {0, 1}, 100e3}, true, true, {0}, {}},
                                           {{"mlx5_1", {2, 3}, 100e3}, true, true, {1}, {}},
                                           {{"mlx5_2", {2, 3}, 0}, true, false, {1}, {}}};

TEST(Overview, RailsOverInternetAddresses) {
  const std::vector<RailSource> sources = {{"10.0.0.1", "10.0.0.0/24", "eth0"}, {"10.0.1.1", "10.0.1.0/24", "eth1"}};
  EXPECT_EQ(rails_text(rails_over_ip(sources, kTwoSides, {0, 1}, false, 4)),
            "engines 0,2: eth0 10.0.0.1; engines 1,3: eth1 10.0.1.1");
  EXPECT_EQ(rails_text(rails_over_ip({sources[1]}, kTwoSides, {0, 1}, false, 1)), "engine 0: eth1 10.0.1.1");
  EXPECT_TRUE(rails_over_ip({}, kTwoSides, {0}, false, 4).empty());
}

TEST(Overview, RailsOverDevicesNearTheRank) {
  EXPECT_EQ(rails_text(rails_over_openfabrics(kTwoSides, {2}, 2)), "engines 0-1: mlx5_1");
  EXPECT_EQ(rails_text(rails_over_openfabrics(kTwoSides, {0, 1, 2, 3}, 3)), "engines 0,2: mlx5_0; engine 1: mlx5_1");
  EXPECT_TRUE(rails_over_openfabrics({kTwoSides[0], kTwoSides[4]}, {0}, 2).empty()) << "none is up";
}

TEST(Overview, DevicesAsText) {
  EXPECT_EQ(device_text(kTwoSides[0]), "eth0: network interface, up, 10.0.0.1, 10000 Mbit/s, NUMA node 0, CPUs 0-1");
  EXPECT_EQ(device_text(kTwoSides[4]), "mlx5_2: InfiniBand or its like, down, speed not known, NUMA node 1, CPUs 2-3");
  EXPECT_EQ(cpus_text({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
  EXPECT_EQ(cpus_text({}), "");
}

}  // namespace
}  // namespace torii::tools
