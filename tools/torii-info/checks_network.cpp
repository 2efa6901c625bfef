// SPDX-License-Identifier: Apache-2.0
// The verdicts on networks. No network can stop shared memory, so no verdict here is worse than a limit.
#include <fmt/format.h>

#include <algorithm>

#include "tools/torii-info/checks.hpp"

namespace torii::tools {
namespace {

std::string join(const std::vector<std::string>& parts, const char* between = ", ") {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : between) + part;
  return text;
}

Check check_interfaces(const Findings& found) {
  const InterfaceFindings& one = found.interfaces;
  const std::string lift = "TORII_INTERFACE=auto, or beginnings of: " + one.names;
  if (!one.error.empty()) return {"interfaces", State::limit, one.error, lift};
  const std::string setting = one.selection.empty() ? "auto" : one.selection;
  if (one.selected.empty()) {
    return {"interfaces", State::limit, "none is up: ranks of other hosts cannot be reached", "ip link set eth0 up"};
  }
  std::string text = fmt::format("TORII_INTERFACE={} selects {}", setting, join(one.selected));
  if (one.only_loopback) {
    return {"interfaces", State::limit, text + ": ranks of other hosts cannot be reached",
            "ip link set eth0 up, ip address add ..., or a container with a network (docker run --network host)"};
  }
  return {"interfaces", State::ok, text + (one.selected.size() > 1 ? "; the first is offered" : ""), ""};
}

Check check_ports(const Findings& found) {
  const PortFindings& ports = found.ports;
  const std::string range = ports.low == 0 ? "auto, any port" : fmt::format("{}-{}", ports.low, ports.high);
  if (ports.tried == 0) {
    return {"ports", State::limit, fmt::format("TORII_PORTS={} not tried: {}", range, ports.error),
            "see interfaces above"};
  }
  if (ports.low == 0 && ports.free != 0) {
    return {"ports", State::ok, "TORII_PORTS=" + range + "; listening on " + ports.address + " works", ""};
  }
  const std::string text =
      fmt::format("TORII_PORTS={}: {} of {} tried are free on {}", range, ports.free, ports.tried, ports.address);
  if (ports.free == 0) {
    return {"ports", State::limit, text + ": " + ports.error,
            "another range in TORII_PORTS; `ss -ltnp` shows who listens"};
  }
  return {"ports", State::ok, text, ""};
}

/// "mlx5_0 up 100000 Mbit/s near CPUs of NUMA node 0".
std::string text_of(const MachineNic& device) {
  std::string text = device.nic.name + (device.is_up ? " up" : " down");
  if (device.nic.mbit_per_s > 0) text += fmt::format(" {:.0f} Mbit/s", device.nic.mbit_per_s);
  if (device.numa_nodes.size() == 1) text += fmt::format(" at NUMA node {}", device.numa_nodes[0]);
  return text;
}

Check check_devices(const Findings& found) {
  if (found.nics.empty()) return {"devices", State::ok, "hwloc sees no physical network device", ""};
  std::vector<std::string> texts;
  std::string down;
  for (const MachineNic& device : found.nics) {
    texts.push_back(text_of(device));
    // Cable and subnet manager bring up a port of InfiniBand, not a command.
    if (!device.is_up && down.empty()) {
      down = device.is_openfabrics ? "ibstat " + device.nic.name + " says what the port waits for"
                                   : "ip link set " + device.nic.name + " up";
    }
  }
  return {"devices", down.empty() ? State::ok : State::limit, join(texts), down};
}

Check check_fabric(const FabricFindings& fabric) {
  if (!fabric.error.empty()) return {fabric.name, State::limit, fabric.error, fabric.lift};
  std::string text = fabric.usable.empty() ? "nothing of it is usable" : "auto takes " + fabric.usable[0];
  const std::vector<std::string> others(fabric.usable.begin() + (fabric.usable.empty() ? 0 : 1), fabric.usable.end());
  if (!others.empty()) text += "; usable too: " + join(others);
  if (!fabric.refused.empty()) text += "; not " + join(fabric.refused, "; not ");
  if (!fabric.usable.empty()) return {fabric.name, State::ok, text, ""};
  return {fabric.name, State::limit, text, "an interface with an address (see above); fi_info lists what there is"};
}

Check check_pmix(const Findings& found) {
  if (found.pmix_error.empty()) {
    const std::string server =
        found.pmix_server.empty() ? "no server has started this process" : "a server has started this process";
    return {"PMIx", State::ok, "the module opens; " + server, ""};
  }
  return {"PMIx", State::limit, "ranks cannot join through it: " + found.pmix_error,
          "apt-get install libpmix2, and a torii that was built with libpmix-dev; or RANK, WORLD_SIZE, MASTER_ADDR and "
          "MASTER_PORT"};
}

}  // namespace

std::vector<Check> judge_network(const Findings& found) {
  std::vector<Check> checks = {check_interfaces(found), check_ports(found), check_devices(found)};
  for (const FabricFindings& fabric : found.fabrics) checks.push_back(check_fabric(fabric));
  checks.push_back(check_pmix(found));
  return checks;
}

}  // namespace torii::tools
