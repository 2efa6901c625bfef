// SPDX-License-Identifier: Apache-2.0
// The control groups (cgroups, version 1 and 2) that this process is in, and how much CPU time they grant.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace torii {

/// The folders of the control groups that govern `controller` ("cpu", "memory") for this process: its own one, then
/// those around it, as far as they can be seen. A container mostly shows its own as the last. `root` is where /proc and
/// the mounts of control groups are found.
std::vector<std::filesystem::path> control_groups(std::string_view controller, const std::filesystem::path& root = "/");

/// A limit on the CPU time of all processes of one control group together.
struct CpuQuota {
  std::uint64_t group = 0;  ///< tells groups of one machine apart, from whatever container they are seen
  double cpus = 0;          ///< time granted divided by time passed
};

/// Of the process's control groups that have one; all of them hold at once.
std::vector<CpuQuota> cpu_quotas(const std::filesystem::path& root = "/");

}  // namespace torii
