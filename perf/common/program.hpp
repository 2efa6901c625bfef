// SPDX-License-Identifier: Apache-2.0
// What the perf programs share around their work: the command line, the sizes, JSON lines, errors into exit codes.
#pragma once

#include <cstddef>
#include <cstdio>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/output.hpp"
#include "tools/command_line.hpp"

namespace torii::perf {

using tools::CommandLine;

/// Adds --version and the example that --help ends with, and parses. Returns false after --help and --version, which
/// are printed where `prints` is true. Throws Failure(kBadCommandLine).
bool parse_command_line(const CommandLine& app, int argc, char** argv, const std::string& example, bool prints = true);
/// The same with what --version says after `torii`.
bool parse_command_line(const CommandLine& app, int argc, char** argv, const std::string& example,
                        const std::string& version, bool prints);

/// -b, -e and -f: sizes from one to another by a factor.
class SizeRange {
 public:
  SizeRange(std::string begin, std::string end) : begin_(std::move(begin)), end_(std::move(end)) {}
  void add_flags(const CommandLine& app);
  /// Reads the texts; throws Failure(kBadCommandLine) unless begin <= end <= most_bytes.
  void read(std::size_t most_bytes = std::size_t{1} << 32);
  /// All sizes of at most the end.
  std::vector<std::size_t> sizes() const;
  std::size_t begin_bytes() const { return begin_bytes_; }
  std::size_t end_bytes() const { return end_bytes_; }
  const std::string& begin_text() const { return begin_; }
  const std::string& end_text() const { return end_; }

 private:
  std::string begin_, end_;
  std::size_t factor_ = 4, begin_bytes_ = 0, end_bytes_ = 0;
};

/// One JSON object per line, each with the host, the commit and the version; the table for people moves to stderr when
/// stdout has the JSON.
class JsonLines {
 public:
  /// Throws Error when the file cannot be written.
  JsonLines(const std::string& path, Output::Mode mode);
  std::FILE* table() const { return table_; }
  bool wanted() const { return static_cast<bool>(output_); }
  /// Adds host, commit and version.
  void add(nlohmann::ordered_json json);

 private:
  Output output_;
  std::FILE* table_;
};

/// Calls `read` with the JSON object of each line of a file. Throws Failure(kBadCommandLine) with file and line where
/// there is none, or where `read` misses a key or throws a Failure.
void read_json_lines(const std::string& path, const std::function<void(const nlohmann::ordered_json&)>& read);

/// Starts `ranks` ranks of this program and does not return, or returns at once for 0. Throws
/// Failure(kBadCommandLine) inside a job, whose launcher has started the ranks.
void start_asked_ranks(int ranks, int argc, char** argv);

/// Runs the work of a program and returns its exit code; exceptions become a message on stderr and their exit code. A
/// bad command line is the same on all ranks, so one of them says it; what happens later may differ, so all do.
int run_program(char** argv, const std::function<int()>& work) noexcept;

}  // namespace torii::perf
