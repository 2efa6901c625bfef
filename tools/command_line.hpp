// SPDX-License-Identifier: Apache-2.0
// What all command lines share: --version, an example in --help, exit codes.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <optional>
#include <string>

#include "tools/exit_codes.hpp"

namespace torii::tools {

/// Adds --version and the example at the end of --help.
inline void describe(CLI::App& app, const std::string& program, const std::string& version,
                     const std::string& example) {
  app.name(program);
  app.set_version_flag("--version", program + " " + version);
  app.footer("Example:\n  " + example);
}

/// Refuses what CLI11 accepts: an empty value, mostly of an unset shell variable, and text that is no number, which
/// CLI11 finds inside every range.
inline void refuse_empty_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    for (std::string value : option->results()) {
      std::ranges::transform(value, value.begin(), [](unsigned char c) { return std::tolower(c); });
      if (value.empty()) throw CLI::ValidationError(option->get_name(), "its value is empty; leave it out or give one");
      if (value == "nan" || value == "-nan" || value == "+nan") {
        throw CLI::ValidationError(option->get_name(), value + " is no number");
      }
    }
  }
  for (const CLI::App* command : app.get_subcommands({})) refuse_empty_values(*command);
}

/// Parses; an exit code means that the program is done: kDone after --help or --version, kBadInput after an error.
inline std::optional<int> parse(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
    refuse_empty_values(app);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kBadInput;
  }
  return std::nullopt;
}

}  // namespace torii::tools
