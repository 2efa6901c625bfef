// SPDX-License-Identifier: Apache-2.0
// The CPUs that a thread may run on, their NUMA node and their cache.
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

/// Reads the kernel's lists of CPUs or nodes, such as "0-3,8". Empty for any other text.
CpuList parse_cpu_list(std::string_view text);

/// The NUMA node that contains all of these CPUs. Nothing if there is no such node, if the machine has only one node,
/// or if the kernel does not say. `system` is the folder of the kernel's files.
std::optional<int> home_node(const CpuList& cpus, const std::filesystem::path& system = "/sys");

/// The lowest CPU of those that share the last cache of all of these CPUs: a number for that cache. Nothing if they
/// share none, as those of a rank that is bound to no cache, or if the kernel does not say.
std::optional<int> shared_cache(const CpuList& cpus, const std::filesystem::path& system = "/sys");

}  // namespace torii
