// SPDX-License-Identifier: Apache-2.0
// Reads the files that settings name: tune tables, rank maps, trees of links; and those of the kernel.
#pragma once

#include <filesystem>
#include <string>

namespace torii {

/// The contents of a regular file of at most 64 MiB. Folders, devices and pipes are refused without waiting for them:
/// some never end, and a context must not hang. Throws Error{invalid_argument}: "<what>: cannot read '<path>': why".
std::string read_text_file(const std::string& path, const std::string& what);

/// The first line of a file of the kernel; empty if there is none.
std::string first_line(const std::filesystem::path& path);

}  // namespace torii
