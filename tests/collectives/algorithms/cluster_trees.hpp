// SPDX-License-Identifier: Apache-2.0
// The networks of tables 1-4 of Hourai, Nishida and Oyanagi 2004 as tree topologies, and random small trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "runtime/topology/tree_topology.hpp"

namespace torii::tests {

/// `clusters` of `machines` dual-processor machines on a switch each; with `mixed` the first cluster, in which rank 0
/// is, and the link between the switches are fast Ethernet, the other gigabit. One cluster has one switch.
struct Cluster {
  int cpus = 2;
  int machines = 2;
  int clusters = 1;
  bool mixed = false;
  bool latency = true;
};

inline std::string link_text(const std::string& a, const std::string& b, const char* rate, const char* time,
                             bool latency) {
  const std::string of = latency ? time : "0us";
  return "link " + a + " " + b + " " + rate + " " + rate + " " + of + " " + of + " full\n";
}

inline TreeTopology tree_of(const Cluster& shape) {
  std::string nodes;
  std::string links;
  for (int cluster = 0; cluster < shape.clusters; ++cluster) {
    const bool slow = shape.mixed && cluster == 0;
    const std::string hub = "switch" + std::to_string(cluster);
    nodes += "node " + hub + " relay\n";
    for (int machine = 0; machine < shape.machines; ++machine) {
      const std::string box = "box" + std::to_string(cluster) + "_" + std::to_string(machine);
      nodes += "node " + box + " relay\n";
      links += link_text(box, hub, slow ? "11.5MB/s" : "100MB/s", slow ? "35us" : "15us", shape.latency);
      for (int cpu = 0; cpu < shape.cpus; ++cpu) {
        const std::string name = box + "_" + std::to_string(cpu);
        nodes += "node " + name + " comm\n";
        links += link_text(name, box, "350MB/s", "0.5us", shape.latency);
      }
    }
  }
  if (shape.clusters == 2) {
    links += link_text("switch0", "switch1", shape.mixed ? "11.5MB/s" : "100MB/s", shape.mixed ? "35us" : "15us",
                       shape.latency);
  }
  return TreeTopology::parse(nodes + links, "cluster");
}

/// All ranks on one gigabit switch.
inline TreeTopology star_of(int ranks, bool latency = true) {
  std::string nodes = "node switch relay\n";
  std::string links;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string name = "cpu" + std::to_string(rank);
    nodes += "node " + name + " comm\n";
    links += link_text(name, "switch", "100MB/s", "15us", latency);
  }
  return TreeTopology::parse(nodes + links, "star");
}

/// A tree of one to three relays and `ranks` ranks, most of which hang on relays, with bandwidths of 1 to 6 B/s, and
/// latencies of 0 to 2 s or none. Bounds and orders that are wrong are wrong on some of these.
inline TreeTopology random_tree(int ranks, bool latency, std::mt19937_64& random) {
  const auto draw = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  const int relays = 1 + draw(3);
  std::string text;
  for (int node = 0; node < relays + ranks; ++node) {
    text += "node n" + std::to_string(node) + (node < relays ? " relay\n" : " comm\n");
  }
  for (int node = 1; node < relays + ranks; ++node) {
    const bool half = draw(6) == 0;
    const std::string there = std::to_string(1 + draw(6)) + "B/s ";
    const std::string back = half ? there : std::to_string(1 + draw(6)) + "B/s ";
    const int other = node < relays || draw(8) == 0 ? draw(node) : draw(relays);
    text += "link n" + std::to_string(node) + " n" + std::to_string(other) + " " + there + back;
    for (int way = 0; way < 2; ++way) text += std::to_string(latency ? draw(3) : 0) + "s ";
    text += half ? "half\n" : "full\n";
  }
  return TreeTopology::parse(text, "random");
}

/// So many hosts on the switch of each site; two sites are joined by a long link, more by a backbone.
inline TreeTopology sites_tree(const std::vector<int>& sizes, const std::string& line = "12.5MB/s 12.5MB/s",
                               const std::string& inside = "0us") {
  std::string nodes = sizes.size() > 2 ? "node backbone relay\n" : "";
  std::string links;
  int rank = 0;
  for (std::size_t site = 0; site < sizes.size(); ++site) {
    const std::string hub = "switch" + std::to_string(site);
    nodes += "node " + hub + " relay\n";
    for (int host = 0; host < sizes[site]; ++host, ++rank) {
      nodes += "node host" + std::to_string(rank) + " comm\n";
      links += "link host" + std::to_string(rank) + " " + hub + " 125MB/s 125MB/s " + inside + " " + inside + " full\n";
    }
    if (sizes.size() > 2) links += "link " + hub + " backbone " + line + " 4ms 4ms full\n";
  }
  if (sizes.size() == 2) links += "link switch0 switch1 " + line + " 8ms 8ms full\n";
  return TreeTopology::parse(nodes + links, "sites");
}

}  // namespace torii::tests
