// SPDX-License-Identifier: Apache-2.0
// Tori, meshes and rails, and the iproute2 commands that make them.
#include "tools/torii-lab/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <climits>

#include "runtime/base/numbers.hpp"
#include "runtime/base/status.hpp"
#include "runtime/topology/routing.hpp"

namespace torii::tools {
namespace {

constexpr std::string_view kTorusDevices[] = {"xp", "xm", "yp", "ym", "zp", "zm"};
// TCP hands a device packets of up to 64 KiB, which TBF would have to cut; these fit into its burst.
constexpr int kPacketBytes = 16384;

std::string device_name(int dimension, int direction) {
  return std::string(kTorusDevices[2 * dimension + (direction > 0 ? 0 : 1)]);
}

/// A locally administered address, which no real card has.
std::string mac_of(int node, std::size_t device) {
  return fmt::format("02:00:00:{:02x}:{:02x}:{:02x}", (node + 1) / 256, (node + 1) % 256, device);
}

std::string torus_address(int node, int turn) {
  return fmt::format("10.{}.{}.{}", 80 + turn, (node + 1) / 256, (node + 1) % 256);
}

void add_devices(LabNetwork& network, const Topology& topology, int node, double rate_mbit) {
  LabNode& here = network.nodes[static_cast<std::size_t>(node)];
  for (int dimension = 0; dimension < topology.dimensions(); ++dimension) {
    for (const int direction : {1, -1}) {
      const int peer = topology.neighbour(node, dimension, direction);
      if (peer < 0) continue;
      const std::size_t number = here.devices.size();
      here.devices.push_back({device_name(dimension, direction), peer, device_name(dimension, -direction),
                              mac_of(node, number), rate_mbit, ""});
    }
  }
}

/// 2 if some nodes have two shortest paths or two cables between them, otherwise 1. The dimensions are the same for all
/// nodes, so node 0 suffices.
int turns_of(const Topology& topology) {
  for (int to = 1; to < topology.ranks(); ++to) {
    std::vector<LinkId> ways[2];
    for (int turn = 0; turn < 2; ++turn) append_route(topology, 0, to, turn, ways[turn]);
    if (ways[0] != ways[1]) return 2;
  }
  return 1;
}

void add_routes(LabNetwork& network, const Topology& topology, int node) {
  LabNode& here = network.nodes[static_cast<std::size_t>(node)];
  for (int turn = 0; turn < static_cast<int>(here.addresses.size()); ++turn) {
    for (int to = 0; to < topology.ranks(); ++to) {
      if (to == node) continue;
      std::vector<LinkId> way;
      append_route(topology, node, to, turn, way);
      const int dimension = way[0] % 6 / 2;
      const int direction = way[0] % 2 == 0 ? 1 : -1;
      const int next = topology.neighbour(node, dimension, direction);
      here.routes.push_back({torus_address(to, turn), device_name(dimension, direction), torus_address(next, turn),
                             torus_address(node, turn)});
    }
  }
}

const LabDevice& device_of(const LabNode& node, std::string_view name) {
  const auto found = std::ranges::find(node.devices, name, &LabDevice::name);
  if (found != node.devices.end()) return *found;
  throw Error(Status::internal, "no device " + std::string(name) + " on " + node.host);
}

}  // namespace

LabNetwork torus_network(std::string_view kind, std::string_view extents, double rate_mbit) {
  LabNetwork network;
  network.text = fmt::format("{} {}", kind, extents);
  network.topology = fmt::format("{}:{}", kind, extents);
  const Topology topology = Topology::parse(network.topology, std::max(ranks_named(network.topology), 1));
  if (topology.selects_ties()) {
    throw Error(
        Status::invalid_argument,
        fmt::format("{}: routes of a laboratory leave no choice half-way round; leave ',ties' out", network.text));
  }
  if (topology.per_node() > 1) {
    throw Error(Status::invalid_argument, network.text + ": a node of a laboratory has one rank; leave the star out");
  }
  if (topology.ranks() < 2 || topology.ranks() > kLabNodesMax) {
    throw Error(Status::invalid_argument,
                fmt::format("{} has {} nodes; a laboratory has 2 to {}", network.text, topology.ranks(), kLabNodesMax));
  }
  network.ranks = topology.ranks();
  network.nodes.resize(static_cast<std::size_t>(network.ranks));
  const int turns = turns_of(topology);
  for (int node = 0; node < topology.ranks(); ++node) {
    LabNode& here = network.nodes[static_cast<std::size_t>(node)];
    here.host = fmt::format("node{}", node);
    for (int turn = 0; turn < turns; ++turn) here.addresses.push_back(torus_address(node, turn));
    add_devices(network, topology, node, rate_mbit);
    add_routes(network, topology, node);
  }
  return network;
}

LabNetwork rails_network(int rails, double rate_mbit) {
  LabNetwork network;
  network.text = fmt::format("rails {}", rails);
  network.ranks = 2;
  network.nodes.resize(2);
  for (int node = 0; node < 2; ++node) {
    LabNode& here = network.nodes[static_cast<std::size_t>(node)];
    here.host = fmt::format("node{}", node);
    here.place[0] = 3 * node;
    for (int rail = 0; rail < rails; ++rail) {
      const std::string device = fmt::format("rail{}", rail);
      here.devices.push_back({device, 1 - node, device, mac_of(node, static_cast<std::size_t>(rail)), rate_mbit,
                              fmt::format("10.90.{}.{}/24", rail, node + 1)});
    }
    here.addresses.push_back(fmt::format("10.90.0.{}", node + 1));
  }
  return network;
}

void set_rate(LabNetwork& network, std::string_view text) {
  const std::string complaint = fmt::format("--link '{}': ", text);
  const std::size_t colon = text.find(':');
  const std::size_t equals = text.find('=');
  int node = -1;
  double rate = 0;
  if (colon != std::string_view::npos && equals != std::string_view::npos && colon < equals) {
    node = parse_number<int>(text.substr(0, colon)).value_or(-1);
    rate = parse_number<double>(text.substr(equals + 1)).value_or(0);
  }
  if (node < 0 || !(rate >= kRateLeastMbit && rate <= kRateMostMbit)) {
    throw Error(Status::invalid_argument, complaint + fmt::format("write NODE:DEVICE=MBIT with a rate from {} to {}, "
                                                                  "as in 0:xp=5",
                                                                  kRateLeastMbit, kRateMostMbit));
  }
  if (node >= static_cast<int>(network.nodes.size())) {
    throw Error(Status::invalid_argument,
                complaint + fmt::format("there is no node {}; the last is {}", node, network.nodes.size() - 1));
  }
  const std::string_view name = text.substr(colon + 1, equals - colon - 1);
  auto& devices = network.nodes[static_cast<std::size_t>(node)].devices;
  const auto found = std::ranges::find(devices, name, &LabDevice::name);
  if (found == devices.end()) {
    std::string names;
    for (const LabDevice& one : devices) names += (names.empty() ? "" : " ") + one.name;
    throw Error(Status::invalid_argument,
                complaint + fmt::format("node {} has no device '{}'; it has {}", node, name, names));
  }
  found->rate_mbit = rate;
}

std::string cable_commands(const LabNetwork& network, const std::vector<std::string>& node_paths) {
  std::string commands;
  for (std::size_t node = 0; node < network.nodes.size(); ++node) {
    for (const LabDevice& one : network.nodes[node].devices) {
      if (one.line >= 0) continue;
      const auto peer = static_cast<std::size_t>(one.peer);
      const LabDevice& other = device_of(network.nodes[peer], one.peer_device);
      // Each cable once: from its end with the lower node, or, for a loop to itself, with the lower name.
      if (std::pair(node, one.name) > std::pair(peer, other.name)) continue;
      commands += fmt::format(
          "link add name {} netns {} address {} gso_max_size {} type veth "
          "peer name {} netns {} address {} gso_max_size {}\n",
          one.name, node_paths[node], one.mac, kPacketBytes, other.name, node_paths[peer], other.mac, kPacketBytes);
    }
  }
  return commands;
}

namespace {

std::string switched_commands(const LabNode& here) {
  const LabSwitching& own = *here.switching;
  std::string commands = "link set lo up\n";
  if (own.bridge) {
    commands += fmt::format("link add {} {} type bridge mcast_snooping 0\n", kNodeDevice,
                            own.mac.empty() ? "" : "address " + own.mac);
  }
  for (const LabDevice& one : here.devices) {
    if (one.line >= 0) commands += fmt::format("link set {} gso_max_size {}\n", one.name, kPacketBytes);
    if (own.bridge) commands += fmt::format("link set {} master {}\n", one.name, kNodeDevice);
    commands += fmt::format("link set {} up\n", one.name);
  }
  if (!own.address.empty()) commands += fmt::format("address add {} dev {}\n", own.address, kNodeDevice);
  if (own.bridge) commands += fmt::format("link set {} up\n", kNodeDevice);
  for (const LabNeighbour& one : here.neighbours) {
    commands += fmt::format("neighbour replace {} lladdr {} dev {} nud permanent\n", one.address, one.mac, kNodeDevice);
  }
  return commands;
}

}  // namespace

std::string node_commands(const LabNetwork& network, int node) {
  const LabNode& here = network.nodes[static_cast<std::size_t>(node)];
  if (here.switching) return switched_commands(here);
  std::string commands = "link set lo up\n";
  for (const LabDevice& one : here.devices) {
    if (!one.address.empty()) commands += fmt::format("address add {} dev {}\n", one.address, one.name);
    commands += fmt::format("link set {} up\n", one.name);
  }
  if (here.routes.empty()) return commands;
  // The node's addresses are on a device that is always up and not a loopback: programs skip loopbacks.
  commands += fmt::format("link add name {0} type veth peer name {0}end\nlink set {0}end up\n", kNodeDevice);
  for (const std::string& one : here.addresses) commands += fmt::format("address add {}/32 dev {}\n", one, kNodeDevice);
  commands += fmt::format("link set {} up\n", kNodeDevice);
  for (const LabDevice& one : here.devices) {
    const LabNode& peer = network.nodes[static_cast<std::size_t>(one.peer)];
    for (const std::string& address : peer.addresses) {
      // Given instead of requested by ARP, so that the counters contain only packets of the program.
      commands += fmt::format("neighbour replace {} lladdr {} dev {} nud permanent\n", address,
                              device_of(peer, one.peer_device).mac, one.name);
    }
  }
  for (const LabRoute& one : here.routes) {
    commands += fmt::format("route add {}/32 via {} dev {} src {} onlink\n", one.to, one.via, one.device, one.from);
  }
  return commands;
}

std::string rate_commands(const LabNode& node) {
  std::string commands;
  for (const LabDevice& one : node.devices) {
    // 17 KB hold one packet of the size above with the headers of its parts; a larger burst would let small messages
    // pass unshaped.
    commands += fmt::format("qdisc add dev {} root tbf rate {}bit burst 17kb latency 100ms\n", one.name,
                            static_cast<long long>(one.rate_mbit * 1e6));
  }
  return commands;
}

}  // namespace torii::tools
