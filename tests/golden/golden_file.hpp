// SPDX-License-Identifier: Apache-2.0
// A golden file: lines "key = value" in a fixed order, compared with what the library computes now.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace torii::golden {

struct Line {
  std::string key;  ///< holds no " = "
  std::string value;
  bool operator==(const Line&) const = default;
};
using Lines = std::vector<Line>;

/// The lines of a golden file without comments (#) and empty lines.
Lines parse(std::string_view text);
/// `about` is the first comment.
std::string format(std::string_view about, const Lines& lines);

/// What differs, in sentences: "plans.txt: KEY: asked VALUE, got VALUE". At most `most` of them, then their count.
/// Keys that only one side has, keys that occur twice, and another order of lines differ too.
std::vector<std::string> differences(const std::string& name, const Lines& asked, const Lines& got,
                                     std::size_t most = 20);

/// Where the committed files are.
std::filesystem::path folder();

/// Whether TORII_GOLDEN_WRITE was 1 at the first call.
bool is_writing();

/// Compares `got` with the file and reports each difference to GoogleTest. With TORII_GOLDEN_WRITE=1 the file is
/// written instead, and the test fails, so that no run with that variable passes.
void check_file(const std::string& name, std::string_view about, const Lines& got);

}  // namespace torii::golden
