// SPDX-License-Identifier: Apache-2.0
// The CPUs of this machine and those that this process may use, as hwloc sees them.
#pragma once

#include <string>

namespace torii::tools {

struct Machine {
  int cpus = 0;              ///< of the machine
  int cpus_allowed = 0;      ///< of this process: its affinity within its cpuset
  std::string allowed_list;  ///< e.g. "0-3,8"
  std::string picture;       ///< sockets, caches and cores, equal ones drawn once; lines end with \n
};

/// Throws Error{no_resource} when hwloc cannot read the machine.
Machine read_machine();

}  // namespace torii::tools
