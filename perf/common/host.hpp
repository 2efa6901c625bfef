// SPDX-License-Identifier: Apache-2.0
// Where and what ran, for reports: the kind of machine, never its name, and the commit of the programs.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace torii::perf {

/// CPU model and number of usable CPUs: "Intel(R) Xeon(R) Processor, 2 CPUs". Then what is imitated here by software,
/// so that times compare with nothing: ", emulation of its CPUs, of rxe0". `root` contains /proc and /sys.
std::string host(const std::filesystem::path& root = "/");
/// Memory that can be had without swapping, in bytes.
size_t available_memory_bytes();
/// The commit the program was built from, "-dirty" added when files differed; "unknown" outside a repository.
const char* commit();

}  // namespace torii::perf
