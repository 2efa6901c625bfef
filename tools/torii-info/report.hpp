// SPDX-License-Identifier: Apache-2.0
// The result of every command of torii-info: the same facts as text for people and as JSON for programs.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace torii::tools {

using Json = nlohmann::ordered_json;

struct Report {
  std::string text;
  Json json;
  std::string svg;  ///< plan only, if a picture was requested
  int code = 0;     ///< the exit code of the program
};

/// A line of the text: a heading in a column of so many characters, and what it says.
template <int kWidth>
std::string row(std::string_view heading, std::string_view text) {
  return fmt::format("{:<{}}{}\n", heading, kWidth, text);
}

/// Writes JSON (one line) and picture to their paths, "-" for stdout, an empty path for nowhere, and the text to stdout
/// unless something else went there. Throws Error{invalid_argument} if both want stdout or a file cannot be written.
void publish(const Report& report, const std::string& json_path, const std::string& svg_path);

}  // namespace torii::tools
