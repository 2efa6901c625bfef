// SPDX-License-Identifier: Apache-2.0
// Hosts with one address each in one subnet, and switches as bridges in their own namespaces.
#include "tools/torii-lab/switched.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/numbers.hpp"
#include "runtime/base/split.hpp"
#include "runtime/base/status.hpp"
#include "runtime/topology/tree_topology.hpp"

namespace torii::tools {
namespace {

std::string address_of(int rank) { return fmt::format("10.95.{}.{}", (rank + 1) / 256, (rank + 1) % 256); }
/// The MAC of a rank's address. Locally administered; 01 distinguishes it from the ports of switches.
std::string mac_of(int rank) { return fmt::format("02:00:01:00:{:02x}:{:02x}", (rank + 1) / 256, (rank + 1) % 256); }
std::string port_mac(std::size_t node, std::size_t port) {
  return fmt::format("02:00:02:{:02x}:{:02x}:{:02x}", node / 256, node % 256, port);
}

LabNode& node_at(LabNetwork& network, int node) { return network.nodes[static_cast<std::size_t>(node)]; }

/// A cable between two nodes, with its own port at each end.
void add_cable(LabNetwork& network, int first, double first_mbit, int second, double second_mbit) {
  LabNode& one = node_at(network, first);
  LabNode& other = node_at(network, second);
  const std::string name = fmt::format("port{}", one.devices.size());
  const std::string other_name = fmt::format("port{}", other.devices.size());
  one.devices.push_back(
      {name, second, other_name, port_mac(static_cast<std::size_t>(first), one.devices.size()), first_mbit, "", -1});
  other.devices.push_back(
      {other_name, first, name, port_mac(static_cast<std::size_t>(second), other.devices.size()), second_mbit, "", -1});
}

void add_line(LabNetwork& network, int first, const std::string& name, int second, const std::string& other_name,
              double capacity_mbit, double delay_ms) {
  const int line = static_cast<int>(network.lines.size());
  node_at(network, first).devices.push_back({name, second, other_name, "", capacity_mbit, "", line});
  node_at(network, second).devices.push_back({other_name, first, name, "", capacity_mbit, "", line});
  network.lines.push_back({{first, second}, {name, other_name}, delay_ms});
}

/// Sets addresses, bridges and neighbours after all devices exist.
void address_ranks(LabNetwork& network) {
  for (int node = 0; node < static_cast<int>(network.nodes.size()); ++node) {
    LabNode& here = node_at(network, node);
    LabSwitching& own = here.switching.emplace();
    const bool is_rank = node < network.ranks;
    own.bridge = !is_rank || here.devices.size() > 1;
    if (!is_rank) {
      here.host = fmt::format("switch{}", node - network.ranks);
      continue;
    }
    here.host = fmt::format("node{}", node);
    here.addresses = {address_of(node)};
    own.address = address_of(node) + "/16";
    if (own.bridge) {
      own.mac = mac_of(node);
    } else {
      // The only cable ends at the device with the address.
      LabDevice& cable = here.devices[0];
      for (LabDevice& one : node_at(network, cable.peer).devices) {
        if (one.peer == node && one.peer_device == cable.name) one.peer_device = kNodeDevice;
      }
      cable.name = kNodeDevice;
      cable.mac = mac_of(node);
    }
    for (int rank = 0; rank < network.ranks; ++rank) {
      if (rank != node) here.neighbours.push_back({address_of(rank), mac_of(rank)});
    }
  }
}

std::vector<int> site_sizes(std::string_view text) {
  std::vector<int> sizes;
  for (const std::string_view token : split(text, '+')) {
    sizes.push_back(parse_number<int>(token).value_or(0));
    if (sizes.back() < 1) return {};
  }
  return sizes;
}

void check_nodes(const LabNetwork& network) {
  if (network.ranks >= 2 && network.nodes.size() <= static_cast<std::size_t>(kLabNodesMax)) return;
  throw Error(
      Status::invalid_argument,
      fmt::format("{} has {} ranks on {} nodes, switches counted; a laboratory has 2 ranks or more on at most {} "
                  "nodes",
                  network.text, network.ranks, network.nodes.size(), kLabNodesMax));
}

}  // namespace

LabNetwork sites_network(std::string_view sizes_text, const SitesOptions& options) {
  const std::vector<int> sizes = site_sizes(sizes_text);
  if (sizes.size() < 2) {
    throw Error(Status::invalid_argument,
                fmt::format("sites '{}': write the hosts of two sites or more, as in 8+8", sizes_text));
  }
  const int sites = static_cast<int>(sizes.size());
  const bool backbone = sites > 2;
  LabNetwork network;
  network.text = fmt::format("sites {}", sizes_text);
  for (const int size : sizes) network.ranks += std::min(size, kLabNodesMax + 1);
  network.nodes.resize(static_cast<std::size_t>(network.ranks + sites + (backbone ? 1 : 0)));
  check_nodes(network);
  int rank = 0;
  for (int site = 0; site < sites; ++site) {
    const int site_switch = network.ranks + site;
    const int size = sizes[static_cast<std::size_t>(site)];
    node_at(network, site_switch).place[0] = rank + (size - 1) / 2.0;
    node_at(network, site_switch).place[1] = 1;
    for (int host = 0; host < size; ++host, ++rank) {
      node_at(network, rank).place[0] = rank;
      node_at(network, rank).place[1] = 2;
      add_cable(network, rank, options.rate_mbit, site_switch, options.rate_mbit);
    }
  }
  if (!backbone) {
    add_line(network, network.ranks, "wan", network.ranks + 1, "wan", options.capacity_mbit, options.delay_ms);
  } else {
    const int centre = network.ranks + sites;
    node_at(network, centre).place[0] = (network.ranks - 1) / 2.0;
    for (int site = 0; site < sites; ++site) {
      add_line(network, network.ranks + site, "wan", centre, fmt::format("wan{}", site), options.capacity_mbit,
               options.delay_ms / 2);
    }
  }
  network.window_bytes = options.window_bytes;
  address_ranks(network);
  network.topology = fmt::format("tree:{}", kTreeFile);
  return network;
}

std::string sites_tree_text(const LabNetwork& network) {
  constexpr double kPayload = 1448.0 / 1514;
  constexpr double kSwitchMs = 0.02;  // about the time that the kernel needs to forward a packet
  std::string nodes;
  std::string links;
  for (std::size_t node = 0; node < network.nodes.size(); ++node) {
    const LabNode& here = network.nodes[node];
    nodes += fmt::format("node {} {}\n", here.host, static_cast<int>(node) < network.ranks ? "comm" : "relay");
    for (const LabDevice& device : here.devices) {
      if (device.peer < static_cast<int>(node)) continue;  // each link once, from its lower end
      const LabNode& other = network.nodes[static_cast<std::size_t>(device.peer)];
      const auto back = std::ranges::find(other.devices, device.peer_device, &LabDevice::name);
      const auto rate = [](double mbit) { return std::llround(mbit * 1e6 / 8 * kPayload); };
      const double delay_ms =
          device.line < 0 ? kSwitchMs : network.lines[static_cast<std::size_t>(device.line)].delay_ms;
      links += fmt::format("link {0} {1} {2}B/s {3}B/s {4}ns {4}ns full\n", here.host, other.host,
                           rate(device.rate_mbit), rate(back->rate_mbit), std::llround(delay_ms * 1e6));
    }
  }
  return nodes + links;
}

LabNetwork tree_network(const std::string& path) {
  const TreeTopology tree = TreeTopology::load(path);
  LabNetwork network;
  network.text = "tree " + path;
  network.topology = "tree:" + path;
  network.ranks = tree.ranks();
  network.nodes.resize(tree.nodes().size());
  check_nodes(network);
  // Ranks first, then relays, in the order of the file.
  std::vector<int> lab_node(tree.nodes().size());
  int relay = tree.ranks();
  for (std::size_t node = 0; node < lab_node.size(); ++node) {
    const int rank = tree.nodes()[node].rank;
    lab_node[node] = rank >= 0 ? rank : relay++;
  }
  for (const TreeLink& link : tree.links()) {
    const auto first = static_cast<std::size_t>(link.ends[0]);
    const auto second = static_cast<std::size_t>(link.ends[1]);
    if (link.half_duplex) {
      throw Error(Status::invalid_argument,
                  fmt::format("{}: the link between {} and {} is half duplex; a laboratory's cables are full duplex",
                              path, tree.nodes()[first].name, tree.nodes()[second].name));
    }
    const auto mbit = [&](std::size_t direction) {
      const double rate = static_cast<double>(link.bandwidth[direction]) * 8e-6;
      if (rate >= kRateLeastMbit && rate <= kRateMostMbit) return rate;
      throw Error(
          Status::invalid_argument,
          fmt::format("{}: the link between {} and {} has {} Mbit/s; a laboratory makes {} to {}", path,
                      tree.nodes()[first].name, tree.nodes()[second].name, rate, kRateLeastMbit, kRateMostMbit));
    };
    add_cable(network, lab_node[first], mbit(0), lab_node[second], mbit(1));
  }
  // In the picture y is the distance from rank 0, x the place in the depth-first order.
  double column = 0;
  for (const int rank : tree.depth_first(0)) {
    LabNode& host = node_at(network, rank);
    host.place[0] = column++;
    host.place[1] = static_cast<double>(tree.way(tree.node_of(0), tree.node_of(rank)).size());
  }
  for (std::size_t node = 0; node < lab_node.size(); ++node) {
    if (lab_node[node] < network.ranks) continue;
    LabNode& relay_node = node_at(network, lab_node[node]);
    // Above the middle of its hosts, or above the middle of all ranks if it has none.
    double columns = 0;
    int hosts = 0;
    for (const LabDevice& one : relay_node.devices) {
      if (one.peer >= network.ranks) continue;
      columns += node_at(network, one.peer).place[0];
      ++hosts;
    }
    relay_node.place[0] = hosts > 0 ? columns / hosts : (network.ranks - 1) / 2.0;
    relay_node.place[1] = static_cast<double>(tree.way(tree.node_of(0), static_cast<int>(node)).size());
  }
  address_ranks(network);
  return network;
}

}  // namespace torii::tools
