// SPDX-License-Identifier: Apache-2.0
// Files that are written whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace torii::tools {

/// Throws Error{invalid_argument} "cannot write '<path>': why" if the file could not be written now. Leaves nothing. ""
/// and "-" can always be written.
void require_writable(const std::string& path);

/// Writes a file beside `path` and renames it, so that `path` has either its old contents or all of `text`; "-" is
/// stdout, and devices and pipes are written directly. Signals wait meanwhile. Throws Error{invalid_argument}.
void write_whole(const std::string& path, std::string_view text);

}  // namespace torii::tools
