// SPDX-License-Identifier: Apache-2.0
// What the command lines of all programs have in common: exit codes, --version, an example in --help.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace torii::tools {

/// Exit codes of every program of the project.
enum ExitCode : int {
  kDone = 0,
  kWrong = 1,        ///< wrong data or a failed check
  kBadInput = 2,     ///< bad command line or input
  kNotPossible = 3,  ///< not possible here; the reason is printed
  kTimedOut = 4,
  kPeerLost = 5,
};

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
