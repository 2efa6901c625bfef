// SPDX-License-Identifier: Apache-2.0
// Makes the network real: one network and one UTS namespace per node, cables between them, counters on each link.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/descriptor.hpp"
#include "tools/torii-lab/network.hpp"

namespace torii::tools {

/// The traffic of one directed link, from the counters of the sending device.
struct LinkCount {
  std::uint64_t bytes = 0;  ///< with Ethernet, IP and TCP headers
  std::uint64_t packets = 0;
};

/// Construct it inside run_in_cage(). There, /run/netns/node<r> is the network of node r, so that `ip netns exec node3
/// COMMAND` works, and /etc/hosts knows the nodes by name.
class Laboratory {
 public:
  /// Throws Error{unsupported} with the output of iproute2.
  explicit Laboratory(const LabNetwork& network);
  const LabNetwork& network() const noexcept { return network_; }
  /// Puts the calling process into the node, for a child before it becomes a program. False with errno set on failure.
  bool enter(int node) const noexcept;
  /// By node and device, in the order of the network.
  std::vector<std::vector<LinkCount>> counts() const;

 private:
  void make_node(int node);
  void make_line(const LabLine& line);
  void write_hosts() const;

  LabNetwork network_;
  std::vector<Descriptor> networks_;
  std::vector<Descriptor> hosts_;
};

/// Puts the calling process into a node of the laboratory in which it runs, by host name, for processes that mpirun
/// starts. False with errno set on failure.
bool enter_by_name(const std::string& host) noexcept;

}  // namespace torii::tools
