// SPDX-License-Identifier: Apache-2.0
// The processes of a job from start to end: signals, the timeout, the first failure. torii-run and torii-lab define
// what a rank is and what else is served meanwhile.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/descriptor.hpp"
#include "tools/exit_codes.hpp"

namespace torii::tools {

/// SIGCHLD and the signals that end a job, except those that this process was told to ignore.
sigset_t job_signals();

/// Opens /dev/null if stdin, stdout or stderr is closed. Otherwise the next descriptor, for instance a socket of the
/// job, would get that number, and the ranks would read and write it. Call it first.
void keep_standard_streams();

/// Waits for the end of `child`, a process that runs a job, and returns its exit code. `signals` is a signalfd of
/// job_signals(); every signal that ends a job is given to `pass_on`. A terminal's signal has reached the whole process
/// group already. Other children of this process are collected when they end.
int wait_for_job(pid_t child, const Descriptor& signals,
                 const std::function<void(int signal, bool from_terminal)>& pass_on);

struct RankJobRules {
  std::string speaker;               ///< the program in whose name messages are printed
  std::vector<std::string> command;  ///< program and arguments
  int processes = 1;
  double timeout_s = 0;              ///< 0: none
  bool continue_on_failure = false;  ///< ranks go on when one fails
  int replacements = 0;             ///< so many failed ranks are replaced by new processes; then a failure ends the job
  int no_program_code = kBadInput;  ///< the exit code if the program cannot be started
  bool hears_signals = true;        ///< false: the derived class is told of signals, and calls hear()
};

/// Single-threaded. A derived class overrides what differs; nothing is called before run().
class RankJob {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RankJob(RankJobRules rules) : rules_(std::move(rules)) {}
  virtual ~RankJob() = default;
  RankJob(const RankJob&) = delete;
  RankJob& operator=(const RankJob&) = delete;

  /// Runs the job to its end and returns the exit code: 0, the first failing rank's code or 128 + signal,
  /// no_program_code, 3 if this machine cannot hold the job, 4 after the timeout. With continue_on_failure it is also 0
  /// if a rank has ended well and no survivor has failed: a survivor is a rank that ends by itself after the first
  /// failure; a rank that a signal ends is lost.
  int run();

 protected:
  /// Called in this process, before the rank's process is made. False, with errno, on failure.
  virtual bool prepare(int rank) = 0;
  /// Called in the rank's process, just before the program. False, with errno, on failure.
  virtual bool become(int rank) = 0;
  /// Called when all ranks have become the program.
  virtual void started() {}
  /// Called when another process has become the rank, after prepare() and ended().
  virtual void replaced(int) {}
  /// How messages name a rank.
  virtual std::string name_of(int rank, pid_t pid) const = 0;
  /// `how` completes "rank 3 ...".
  virtual void ended(int rank, const std::string& how);
  /// What else poll() must watch, until when, and what to do after it.
  virtual void watch(std::vector<pollfd>& entries) const;
  virtual std::optional<Clock::time_point> deadline() const { return std::nullopt; }
  virtual void serve() {}
  /// Called before ranks are told to end, or when they may have been.
  virtual void ending() {}

  /// A signal has come that ends a job. `from_terminal`: the ranks have it already.
  void hear(int signal, bool from_terminal);
  /// Kills all ranks now.
  void kill_all();
  /// Whether this process is or was a rank.
  bool is_rank(pid_t pid) const;
  bool is_running(pid_t pid) const;
  void say(const std::string& sentence) const;
  const RankJobRules& rules() const { return rules_; }

 private:
  struct Process {
    pid_t pid = 0;
    bool running = false;
  };

  bool start();
  bool replace(int rank);
  bool cannot(const std::string& what);
  [[noreturn]] void become_program(int rank, int report);
  int wait_ms() const;
  void hear_signals();
  void reap();
  void on_end(int rank, int status);
  void on_deadlines();
  void signal_all(int signal);
  void end_all();
  bool any_running() const;
  std::string running_names() const;

  RankJobRules rules_;
  std::vector<Process> processes_;
  Descriptor signals_;
  sigset_t inherited_mask_{};
  std::optional<int> exit_code_;  // decided by the first failure or the timeout
  bool ending_ = false;           // the ranks were told to end; how they end does not matter
  bool interrupted_ = false;
  bool survivor_failed_ = false;
  int replacements_ = 0;  // so far
  bool has_end_ = false;  // a rank has ended well: a new process would not find it
  std::optional<Clock::time_point> timeout_at_;
  std::optional<Clock::time_point> end_at_;
  std::optional<Clock::time_point> kill_at_;
};

}  // namespace torii::tools
