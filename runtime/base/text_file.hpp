// SPDX-License-Identifier: Apache-2.0
// Reads the files that settings name: tune tables, rank maps, trees of links.
#pragma once

#include <string>

namespace torii {

/// The contents of a regular file of at most 64 MiB. Folders, devices and pipes are refused without waiting for them:
/// some never end, and a context must not hang. Throws Error{invalid_argument}: "<what>: cannot read '<path>': why".
std::string read_text_file(const std::string& path, const std::string& what);

}  // namespace torii
