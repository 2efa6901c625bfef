// SPDX-License-Identifier: Apache-2.0
// The control groups (cgroups, version 1 and 2) of this process, and the CPU time that they allow.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace torii {

/// The folders of the control groups that limit `controller` ("cpu", "memory") for this process: its own group, then
/// the groups around it that are visible. In a container, the container's group mostly is the last. `root` contains
/// /proc and the mounts of control groups.
std::vector<std::filesystem::path> control_groups(std::string_view controller, const std::filesystem::path& root = "/");

/// A limit on the CPU time of all processes of one control group together.
struct CpuQuota {
  std::uint64_t group = 0;  ///< identifies the group on this machine, the same in every container
  double cpus = 0;          ///< CPU time allowed divided by time passed
};

/// The quotas of all control groups of this process that have one. All of them apply.
std::vector<CpuQuota> cpu_quotas(const std::filesystem::path& root = "/");

}  // namespace torii
