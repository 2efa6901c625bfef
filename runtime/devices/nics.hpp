// SPDX-License-Identifier: Apache-2.0
// The network devices of this machine and the CPUs that they are near to, as hwloc sees them. Not part of the library:
// modules and tools that need it link torii_nics, so that hwloc is in no other process.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/devices/rails.hpp"

namespace torii {

struct MachineNic {
  Nic nic;
  bool is_openfabrics = false;  ///< InfiniBand and its like; otherwise a network interface
  bool is_up = false;
  std::vector<int> numa_nodes;         ///< that it is attached to; empty: not known
  std::vector<std::string> addresses;  ///< internet addresses of a network interface that is up
};

/// Physical devices, those that are down included; virtual interfaces (bridges, veth) are not among them. `system` is
/// where the kernel tells states and speeds. Empty when hwloc cannot read the machine.
std::vector<MachineNic> nics_of_machine(const std::filesystem::path& system = "/sys");

}  // namespace torii
