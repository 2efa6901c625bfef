// SPDX-License-Identifier: Apache-2.0
// Jobs of tune_perf on this machine: one after the other, within one time limit.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "tools/torii-info/tune_lines.hpp"

namespace torii::tools {

/// A file in memory, which ranks open as path(). It vanishes with the last process that has it.
class MemoryFile {
 public:
  /// Throws Error{no_resource}.
  explicit MemoryFile(const char* name);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  const std::string& path() const noexcept { return path_; }
  std::string read() const;
  void write(std::string_view text) const;

 private:
  int file_ = -1;
  std::string path_;
};

/// The ranks of a job, its time, and the flags that say what it measures beside the choices of the table in force.
struct TuneJob {
  int ranks = 2;
  double budget_s = 1;             ///< measuring ends then
  std::vector<std::string> flags;  ///< of tune_perf
};

class TuneJobs {
 public:
  /// Time counts from now on. Throws Error{unsupported} if tune_perf is not installed.
  TuneJobs(double seconds, std::string command);

  /// Starts the ranks and waits for their end, at most until the whole time is over. Ranks print messages of theirs and
  /// the progress, on a terminal, to stderr. Returns 0, also if cells are missing because time was over, or the exit
  /// code of ranks (128 + signal after Ctrl-C) with which the whole run must end. Figures of cells that were done are
  /// in lines() in each case.
  int run(const TuneJob& job, const std::string& label);

  const std::vector<TuneLine>& lines() const noexcept { return lines_; }
  /// The lines as tune_perf wrote them.
  const std::string& raw() const noexcept { return raw_; }
  double left_s() const;
  double seconds() const noexcept { return seconds_; }

 private:
  using Clock = std::chrono::steady_clock;
  void take(const std::string& text);

  double seconds_;
  std::string command_;
  std::string program_;
  Clock::time_point begun_ = Clock::now();
  std::vector<TuneLine> lines_;
  std::string raw_;
};

}  // namespace torii::tools
