// SPDX-License-Identifier: Apache-2.0
// The network devices of this machine and the CPUs near them, from hwloc. The library does not contain this code: the
// modules and tools that need it link torii_nics, so that no other process loads hwloc.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/devices/rails.hpp"

namespace torii {

struct MachineNic {
  Nic nic;
  bool is_openfabrics = false;  ///< InfiniBand or similar; otherwise a network interface
  bool is_up = false;
  std::vector<int> numa_nodes;         ///< the nodes that it is attached to; empty if unknown
  std::vector<std::string> addresses;  ///< internet addresses of a network interface that is up
};

/// The physical devices, including those that are down, without virtual interfaces (bridges, veth). `system` is the
/// folder of the kernel's files. Empty if hwloc cannot read the machine.
std::vector<MachineNic> nics_of_machine(const std::filesystem::path& system = "/sys");

}  // namespace torii
