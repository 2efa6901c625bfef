// SPDX-License-Identifier: Apache-2.0
// The laboratory as data: nodes, cables, addresses and routes. Pure: nothing is made here.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/topology/topology.hpp"

namespace torii::tools {

/// One end of a cable. The directed link from its node to `peer` carries what it sends.
struct LabDevice {
  std::string name;
  int peer = 0;             ///< node at the other end
  std::string peer_device;  ///< its device there
  std::string mac;
  double rate_mbit = 0;  ///< of the direction from this end, in 10^6 bits per second
  std::string address;   ///< with prefix length; empty if the node's own addresses serve
  int line = -1;         ///< the number of the long line of which it is an end; -1: an end of a cable
};

/// Two devices between which packets travel for a time, as on a long fibre. Each end is named by its node; the devices
/// are those with this `line`.
struct LabLine {
  int nodes[2] = {0, 0};
  std::string devices[2];
  double delay_ms = 0;  ///< one way
};

/// The additional parts of a node of a switched network.
struct LabSwitching {
  /// All devices are ports of one switch. A rank's switch is its own device kNodeDevice, with this MAC.
  bool bridge = false;
  std::string mac;
  std::string address;  ///< with prefix length, on kNodeDevice; empty: there is no rank
};

/// The MAC of another rank's address.
struct LabNeighbour {
  std::string address;
  std::string mac;
};

/// A route to one address of another node, by one device.
struct LabRoute {
  std::string to;
  std::string device;
  std::string via;   ///< address of the neighbour
  std::string from;  ///< own address of the packets unless the program chooses
};

struct LabNode {
  std::string host;                    ///< its UTS name
  std::vector<std::string> addresses;  ///< addresses of the node; programs learn the first one
  std::vector<LabDevice> devices;
  std::vector<LabRoute> routes;
  std::optional<LabSwitching> switching;
  std::vector<LabNeighbour> neighbours;  ///< if it is a rank of a switched network
  double place[2] = {0, 0};              ///< in a picture of a network other than a torus; in nodes, y downwards
};

struct LabNetwork {
  std::string text;      ///< the text of the command line, e.g. "torus 3x3"
  std::string topology;  ///< the value of TORII_TOPOLOGY; empty if it has none
  int ranks = 0;         ///< the first nodes have a rank each; the others are switches
  std::vector<LabNode> nodes;
  std::vector<LabLine> lines;
  std::size_t window_bytes = 0;  ///< the memory for received data of a TCP stream; 0: the system's default
};

inline constexpr int kLabNodesMax = 64;
inline constexpr double kRateLeastMbit = 0.1;
inline constexpr double kRateMostMbit = 100000;
/// The tree topology file of a network of sites, which exists inside the laboratory only.
inline constexpr std::string_view kTreeFile = "/run/netns/.tree";
/// The device with a node's addresses.
inline constexpr std::string_view kNodeDevice = "node";

/// Rank r is node r, in every network. A node has the address 10.80.h.l with r + 1 = 256 h + l: packets to it take the
/// way of append_route() with turn 0. In a torus with an even extent it also has 10.81.h.l, for turn 1, so that
/// programs can use both ways if they are equally long, and both cables of an extent of 2. Devices are xp xm yp ym zp
/// zm: dimension, then direction. `kind` is torus or mesh, `extents` like 3x3 or 4x4x2m. Throws
/// Error{invalid_argument}.
LabNetwork torus_network(std::string_view kind, std::string_view extents, double rate_mbit);

/// Two hosts, `rails` cables side by side, each with its own network: 10.90.k.1 and 10.90.k.2 on device rail<k>.
LabNetwork rails_network(int rails, double rate_mbit);

/// Changes the rate of directed links: "NODE:DEVICE=MBIT". Throws Error{invalid_argument} naming the error.
void set_rate(LabNetwork& network, std::string_view text);

/// The commands for `ip -batch` that make all cables; `node_paths` are files that represent the nodes' namespaces.
std::string cable_commands(const LabNetwork& network, const std::vector<std::string>& node_paths);
/// For `ip -batch` inside the namespace of a node: addresses, neighbours, routes.
std::string node_commands(const LabNetwork& network, int node);
/// For `tc -batch` inside that namespace: the rates.
std::string rate_commands(const LabNode& node);

}  // namespace torii::tools
