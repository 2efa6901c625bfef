// SPDX-License-Identifier: Apache-2.0
// The CPUs that a thread may run on, and the NUMA node that they stand in.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace torii {

/// CPU numbers, ascending.
using CpuList = std::vector<int>;

/// The CPUs that the calling thread may run on.
CpuList allowed_cpus();

/// A list as the kernel writes it, "0-3,8": of CPUs or of nodes. Empty for an empty text and for anything else.
CpuList parse_cpu_list(std::string_view text);

/// The NUMA node that holds all of these CPUs, where the machine has several nodes; nothing otherwise, and where the
/// kernel does not tell. `system` is where it tells.
std::optional<int> home_node(const CpuList& cpus, const std::filesystem::path& system = "/sys");

}  // namespace torii
