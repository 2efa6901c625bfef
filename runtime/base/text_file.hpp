// SPDX-License-Identifier: Apache-2.0
// Reads the files that settings name: tune tables, rank maps, trees of links; and those of the kernel.
#pragma once

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace torii {

/// The contents of a regular file of at most 64 MiB. Folders, devices and pipes are refused without waiting for them:
/// some never end, and a context must not hang. Throws Error{invalid_argument}: "<what>: cannot read '<path>': why".
std::string read_text_file(const std::string& path, const std::string& what);

/// The first line of a file of the kernel; empty if there is none.
std::string first_line(const std::filesystem::path& path);

/// The first word of a file of the kernel, as a number or text; nothing if it cannot be read.
template <class Value>
std::optional<Value> first_value(const std::filesystem::path& path) {
  std::ifstream file(path);
  Value value{};
  return file >> value ? std::optional(value) : std::nullopt;
}

}  // namespace torii
