// SPDX-License-Identifier: Apache-2.0
// The findings of `torii-info doctor` on this machine, before any verdict.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/selection/tune_table.hpp"
#include "runtime/devices/memory_limits.hpp"
#include "runtime/devices/nics.hpp"

namespace torii::tools {

/// The result of trying a system call: 0, or the errno with which it was refused.
using Tried = int;

/// The ports of TORII_PORTS on the address on which torii would listen.
struct PortFindings {
  int low = 0;  ///< 0: any port
  int high = 0;
  int tried = 0;  ///< from `low` on
  int free = 0;
  std::string address;
  std::string error;  ///< why none could be tried
};

struct InterfaceFindings {
  std::string selection;              ///< TORII_INTERFACE; empty: auto
  std::vector<std::string> selected;  ///< "eth0 10.0.0.1/24", those that would be offered, best first
  bool only_loopback = false;
  std::string error;  ///< the selection names nothing
  std::string names;  ///< of the interfaces that are up
};

/// A transport over an external library, and its providers.
struct FabricFindings {
  std::string name;   ///< "libfabric"
  std::string error;  ///< why it is missing
  std::string lift;
  std::vector<std::string> usable;   ///< best first
  std::vector<std::string> refused;  ///< "verbs;ofi_rxm: no device here offers it"
};

struct Findings {
  int ranks = 1;
  // Memory.
  Tried memfd = 0;
  Tried wipe_on_fork = 0;
  std::string wanted_arena;  ///< TORII_ARENA as text
  std::size_t wanted_arena_bytes = 0;
  std::size_t possible_arena_bytes = 0;  ///< 0: not even the minimum
  std::string arena_error;
  std::optional<std::size_t> shm_bytes;     ///< of /dev/shm
  std::uint64_t locked_bytes = UINT64_MAX;  ///< RLIMIT_MEMLOCK
  int overcommit = 0;                       ///< vm.overcommit_memory
  std::optional<MemoryLeft> group_memory;   ///< of the control group that has the least left; none: no limit
  std::optional<MemoryLeft> commit_memory;  ///< in mode 2
  Tried userfaultfd = 0;
  Tried place_memory = 0;  ///< mbind
  int numa_nodes = 1;
  // Processes.
  Tried pidfd = 0;
  Tried read_peer = 0;              ///< process_vm_readv from a process that is no descendant
  std::optional<int> ptrace_scope;  ///< of yama
  bool filters_calls = false;       ///< this process runs under a seccomp filter
  int cpus = 1;
  int cpus_allowed = 1;
  std::string cpus_text;             ///< "0-3"
  std::optional<double> quota_cpus;  ///< the least CPU quota of the control groups, in CPUs
  // Selection.
  std::string tune_file;                  ///< empty: the built-in table
  std::string tune_error;                 ///< why the file cannot be used
  std::optional<MachineShape> tuned_for;  ///< where the rows were measured, if the table says so
  MachineShape shape;                     ///< of this machine, with the ranks of this job
  // Network.
  InterfaceFindings interfaces;
  PortFindings ports;
  std::vector<MachineNic> nics;
  std::vector<FabricFindings> fabrics;
  std::string pmix_error;   ///< empty: the module opens
  std::string pmix_server;  ///< the name space that a launcher gave; empty: none
};

/// Tries and reads everything for a job of `ranks` ranks; 0: as many as there are CPUs that may be used. Call it while
/// the process has one thread. Throws Error for a bad setting.
Findings find_out(int ranks);

}  // namespace torii::tools
