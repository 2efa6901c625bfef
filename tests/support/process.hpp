// SPDX-License-Identifier: Apache-2.0
// Programs as the tests see them: started with a changed environment, watched, and gone when their owner goes.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace torii::tests {

/// What a program left: its exit code (128 + signal when ended by one) and what it wrote to stdout and stderr.
struct Outcome {
  int code = -1;
  std::string output;
  double seconds = 0;
};

/// How many times as long as elsewhere programs may take on this machine: TORII_TEST_PATIENCE, which ./dev verbs sets
/// where CPUs are emulated, else 1. Throws std::invalid_argument if it is no number.
double patience();

/// A running program whose stdout and stderr come to us. Killed when it is still running at the end.
class Process {
 public:
  /// `environment` holds NAME=value; an empty value removes the variable.
  explicit Process(const std::vector<std::string>& command, const std::vector<std::string>& environment = {});
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();
  pid_t pid() const noexcept { return pid_; }
  void kill(int signal) const;
  /// Reads to the end of its output and waits; after `deadline_s` times patience() it is killed and the code is 137.
  Outcome wait(double deadline_s = 30);

 private:
  pid_t pid_ = -1;
  int output_ = -1;
  double started_s_ = 0;
};

inline Outcome run(const std::vector<std::string>& command, const std::vector<std::string>& environment = {}) {
  return Process(command, environment).wait();
}

[[nodiscard]] inline bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// How often the text holds the part.
int count_of(const std::string& text, const std::string& part);

/// Children of a process, as the kernel lists them now.
std::vector<pid_t> children_of(pid_t pid);

/// The ranks of a torii-run (or of a program that starts ranks as it does): children of its only child.
std::vector<pid_t> ranks_of(pid_t launcher);

/// CLOCK_MONOTONIC in seconds.
double now_s();

}  // namespace torii::tests
