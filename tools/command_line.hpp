// SPDX-License-Identifier: Apache-2.0
// What the command lines of all programs have in common: --version, an example in --help, exit codes.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "tools/exit_codes.hpp"

namespace torii::tools {

/// Adds --version and the one example that --help ends with.
inline void describe(CLI::App& app, const std::string& program, const std::string& version,
                     const std::string& example) {
  app.name(program);
  app.set_version_flag("--version", program + " " + version);
  app.footer("Example:\n  " + example);
}

/// Parses; an exit code means that the program is done: kDone after --help or --version, kBadInput after an error.
inline std::optional<int> parse(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kBadInput;
  }
  return std::nullopt;
}

}  // namespace torii::tools
