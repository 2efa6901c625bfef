// SPDX-License-Identifier: Apache-2.0
// Starts, watches and ends the processes of a job.
#include "tools/rank_job.hpp"

#include <fcntl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "runtime/devices/open_files.hpp"

namespace torii::tools {
namespace {

// Survivors get a moment to report before they are asked to end, and another one before they are killed.
constexpr auto kGrace = std::chrono::seconds(1);
constexpr auto kPatience = std::chrono::seconds(3);

/// Descriptors of a process with so many ranks beside it. This process has one or two for each rank. A rank has two for
/// each other one while it joins; a fabric, where one runs, has two for each engine and two that watch the process.
constexpr std::size_t kFilesPerRank = 8;
/// Those of the program itself.
constexpr std::size_t kOtherFiles = 256;

std::string how_it_ended(int status) {
  if (!WIFSIGNALED(status)) return "ended with code " + std::to_string(WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  return "was ended by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
}

int exit_code_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

}  // namespace

sigset_t job_signals() {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    // Signals that our parent told us to ignore (nohup, background jobs) stay ignored.
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&mask, signal);
  }
  return mask;
}

void keep_standard_streams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    // This gets the lowest free number.
    if (fcntl(stream, F_GETFD) < 0) (void)!open("/dev/null", O_RDWR);
  }
}

int wait_for_job(pid_t child, const Descriptor& signals,
                 const std::function<void(int signal, bool from_terminal)>& pass_on) {
  while (true) {
    signalfd_siginfo info;
    if (read(signals.get(), &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) continue;
    if (info.ssi_signo != SIGCHLD) {
      pass_on(static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL);
      continue;
    }
    // Other children that have ended are collected too: nobody else does, and the first process of a container inherits
    // every orphan.
    int status = 0;
    for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG)) {
      if (pid == child) return exit_code_of(status);
    }
  }
}

int RankJob::run() {
  std::signal(SIGCHLD, SIG_DFL);
  // No further than needed: programs that use select(), or close all that may be open, rely on a low limit.
  raise_open_files_limit(kFilesPerRank * static_cast<std::size_t>(rules_.processes) + kOtherFiles);
  const sigset_t mask = job_signals();
  sigprocmask(SIG_BLOCK, &mask, &inherited_mask_);
  sigset_t heard = mask;
  if (!rules_.hears_signals) sigemptyset(&heard);
  sigaddset(&heard, SIGCHLD);
  signals_ = Descriptor(signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK));
  if (start()) {
    if (rules_.timeout_s > 0) {
      timeout_at_ = Clock::now() + std::chrono::ceil<Clock::duration>(std::chrono::duration<double>(rules_.timeout_s));
    }
    started();
  } else {
    kill_all();
  }
  std::vector<pollfd> entries;
  while (any_running()) {
    entries.assign(1, {signals_.get(), POLLIN, 0});
    watch(entries);
    poll(entries.data(), entries.size(), wait_ms());
    hear_signals();
    reap();
    on_deadlines();
    serve();
  }
  const bool survived = has_end_ && !survivor_failed_ && !ending_ && !interrupted_;
  return rules_.continue_on_failure && survived ? kDone : exit_code_.value_or(kDone);
}

void RankJob::say(const std::string& sentence) const {
  std::fprintf(stderr, "%s: %s\n", rules_.speaker.c_str(), sentence.c_str());
}

void RankJob::ended(int, const std::string&) {}

void RankJob::watch(std::vector<pollfd>&) const {}

bool RankJob::cannot(const std::string& what) {
  const int error = errno;
  std::string text = "cannot " + what + ": " + std::strerror(error);
  if (error == EMFILE) {
    text += "; " + rules_.speaker + " may open " + std::to_string(open_files_limit()) +
            ", and needs up to 2 for each of " + std::to_string(rules_.processes) +
            " ranks; raise the limit (ulimit -n, or ulimit -Hn as root)";
  }
  say(text);
  exit_code_ = kNotPossible;
  return false;
}

/// False if not all ranks could be started; exit_code_ is then set and the reason printed.
bool RankJob::start() {
  int report[2] = {-1, -1};
  if (!signals_.open() || pipe2(report, O_CLOEXEC) != 0) return cannot("watch processes");
  const Descriptor report_end(report[0]);
  Descriptor rank_end(report[1]);
  for (int rank = 0; rank < rules_.processes; ++rank) {
    if (!prepare(rank)) return cannot("prepare rank " + std::to_string(rank));
    const pid_t pid = fork();
    if (pid < 0) return cannot("start rank " + std::to_string(rank));
    if (pid == 0) become_program(rank, rank_end.get());
    processes_.push_back({pid, true});
  }
  rank_end = Descriptor();
  // The pipe closes without a message when every rank has become the program.
  int reason = 0;
  ssize_t got = 0;
  while ((got = read(report_end.get(), &reason, sizeof(reason))) < 0 && errno == EINTR) {
  }
  if (got != sizeof(reason)) return true;
  say("cannot start '" + rules_.command[0] + "': " + std::strerror(reason));
  exit_code_ = rules_.no_program_code;
  return false;
}

/// False if the rank cannot have a new process; the reason is printed.
bool RankJob::replace(int rank) {
  const auto cannot = [&](const std::string& what) {
    say("cannot " + what + " the new process of rank " + std::to_string(rank) + ": " + std::strerror(errno));
    return false;
  };
  if (!prepare(rank)) return cannot("prepare");
  const pid_t pid = fork();
  if (pid < 0) return cannot("start");
  if (pid == 0) become_program(rank, -1);
  processes_[static_cast<std::size_t>(rank)] = {pid, true};
  ++replacements_;
  replaced(rank);
  return true;
}

void RankJob::become_program(int rank, int report) {
  sigprocmask(SIG_SETMASK, &inherited_mask_, nullptr);
  // Only one process can read the terminal or pipe.
  if (rank != 0) {
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    if (nothing > STDERR_FILENO) close(nothing);
  }
  std::vector<char*> arguments;
  for (std::string& argument : rules_.command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  if (become(rank)) execvp(arguments[0], arguments.data());
  const int reason = errno;
  if (report < 0) {
    say("cannot start '" + rules_.command[0] + "': " + std::strerror(reason));
    _exit(rules_.no_program_code);
  }
  // If the launcher has ended nobody reads it, and this process ends as well.
  _exit(write(report, &reason, sizeof(reason)) < 0 ? kPeerLost : kBadInput);
}

int RankJob::wait_ms() const {
  std::optional<Clock::time_point> next = deadline();
  for (const auto& at : {timeout_at_, end_at_, kill_at_}) {
    if (at && (!next || *at < *next)) next = at;
  }
  if (!next) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, 3'600'000));
}

void RankJob::hear_signals() {
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal != SIGCHLD) hear(signal, info.ssi_code == SI_KERNEL);
  }
}

void RankJob::hear(int signal, bool from_terminal) {
  ending();
  // The ranks handle the first signal; the second one ends them.
  if (interrupted_) {
    signal_all(SIGKILL);
  } else if (!from_terminal) {
    signal_all(signal);
  }
  interrupted_ = true;
}

void RankJob::kill_all() {
  ending();
  ending_ = true;
  signal_all(SIGKILL);
}

bool RankJob::is_rank(pid_t pid) const { return std::ranges::find(processes_, pid, &Process::pid) != processes_.end(); }

bool RankJob::is_running(pid_t pid) const {
  return std::ranges::any_of(processes_, [pid](const Process& one) { return one.running && one.pid == pid; });
}

void RankJob::reap() {
  std::vector<std::pair<int, int>> ended;  // (rank, status)
  int status = 0;
  // Orphans of the ranks come here too.
  for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG)) {
    const auto process = std::ranges::find(processes_, pid, &Process::pid);
    if (process == processes_.end() || !process->running) continue;
    process->running = false;
    ended.emplace_back(static_cast<int>(process - processes_.begin()), status);
  }
  // Of several ranks that ended since the last look, those that a signal ended are more likely the cause.
  std::stable_partition(ended.begin(), ended.end(), [](const auto& one) { return WIFSIGNALED(one.second); });
  for (const auto& [rank, how] : ended) on_end(rank, how);
}

void RankJob::on_end(int rank, int status) {
  ended(rank, how_it_ended(status));
  const int code = exit_code_of(status);
  has_end_ = has_end_ || code == 0;
  if (ending_ || code == 0) return;
  const std::string sentence =
      name_of(rank, processes_[static_cast<std::size_t>(rank)].pid) + " " + how_it_ended(status);
  if (!interrupted_ && !end_at_ && !has_end_ && replacements_ < rules_.replacements && replace(rank)) {
    return say(sentence + "; replaced by process " + std::to_string(processes_[static_cast<std::size_t>(rank)].pid) +
               ", replacement " + std::to_string(replacements_) + " of " + std::to_string(rules_.replacements));
  }
  say(sentence);
  survivor_failed_ = survivor_failed_ || (exit_code_ && !WIFSIGNALED(status));
  // A lost peer is a consequence: the lost rank may be reported a moment later, and its code is the job's.
  if (!exit_code_ || exit_code_ == kPeerLost) exit_code_ = code;
  if (!rules_.continue_on_failure && !end_at_) end_at_ = Clock::now() + kGrace;
}

void RankJob::on_deadlines() {
  const Clock::time_point now = Clock::now();
  if (timeout_at_ && now >= *timeout_at_) {
    timeout_at_.reset();
    say("the timeout is over; still running: " + running_names());
    if (!exit_code_) exit_code_ = kTimedOut;
    end_all();
  }
  if (end_at_ && now >= *end_at_) end_all();
  if (kill_at_ && now >= *kill_at_) {
    kill_at_.reset();
    signal_all(SIGKILL);
  }
}

void RankJob::end_all() {
  end_at_.reset();
  if (ending_ || !any_running()) return;
  ending();
  ending_ = true;
  signal_all(SIGTERM);
  signal_all(SIGCONT);  // a stopped process does not hear SIGTERM
  kill_at_ = Clock::now() + kPatience;
}

void RankJob::signal_all(int signal) {
  for (const Process& process : processes_) {
    if (process.running) kill(process.pid, signal);
  }
}

bool RankJob::any_running() const { return std::ranges::any_of(processes_, &Process::running); }

std::string RankJob::running_names() const {
  std::string text;
  for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
    if (!processes_[rank].running) continue;
    text += (text.empty() ? "" : ", ") + name_of(static_cast<int>(rank), processes_[rank].pid);
  }
  return text;
}

}  // namespace torii::tools
