// SPDX-License-Identifier: Apache-2.0
// The CPUs of this machine and those that this process may use, as hwloc sees them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace torii::tools {

/// A NUMA node.
struct MachineMemory {
  int node = 0;
  std::string cpus;  ///< nearby ones: "0-15"
  std::size_t bytes = 0;
  bool holds_allowed = false;  ///< all CPUs of this process are among them
};

struct Machine {
  int cpus = 0;              ///< of the machine
  int cpus_allowed = 0;      ///< of this process: its affinity within its cpuset
  std::string allowed_list;  ///< e.g. "0-3,8"
  int l3_groups = 1;         ///< third-level caches of the CPUs allowed; 1 if there is none
  int numa_nodes = 1;        ///< of the CPUs allowed
  std::vector<MachineMemory> memories;
  std::string picture;  ///< sockets, caches and cores, equal ones drawn once; lines end with \n
};

/// Throws Error{no_resource} if hwloc cannot read the machine.
Machine read_machine();

}  // namespace torii::tools
