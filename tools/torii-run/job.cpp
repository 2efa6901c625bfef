// SPDX-License-Identifier: Apache-2.0
// Starting, watching and ending the ranks of a job.
#include "tools/torii-run/job.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/descriptor.hpp"
#include "runtime/job_socket.hpp"
#include "tools/exit_codes.hpp"
#include "tools/torii-run/gather_server.hpp"

namespace torii::tools {
namespace {

using Clock = std::chrono::steady_clock;
// Survivors get a moment to say what they saw before they are asked to end, and another before they have to.
constexpr auto kGrace = std::chrono::seconds(1);
constexpr auto kPatience = std::chrono::seconds(3);

void say(const std::string& sentence) { std::fprintf(stderr, "torii-run: %s\n", sentence.c_str()); }

std::string how_it_ended(int status) {
  if (!WIFSIGNALED(status)) return "ended with code " + std::to_string(WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  return "was ended by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
}

int exit_code_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

class Job {
 public:
  explicit Job(const JobOptions& options) : options_(options) {}
  int run();

 private:
  struct Process {
    pid_t pid = 0;
    bool running = false;
  };

  void take_signals();
  bool start();
  [[noreturn]] void become_rank(int rank, int socket, int report, pid_t launcher);
  void loop();
  void hear_signals();
  void reap();
  void on_end(int rank, int status);
  void on_deadlines();
  void signal_all(int signal);
  void end_all();
  void end_strays();
  int running() const;
  std::string running_ranks() const;

  const JobOptions& options_;
  std::vector<Process> processes_;
  std::unique_ptr<GatherServer> server_;
  Descriptor signals_;
  sigset_t inherited_mask_{};
  std::optional<int> exit_code_;  // decided by the first failure or the timeout
  bool ending_ = false;           // the ranks were told to end; how they end is no news
  bool interrupted_ = false;
  std::optional<Clock::time_point> timeout_at_;
  std::optional<Clock::time_point> end_at_;
  std::optional<Clock::time_point> kill_at_;
};

int Job::run() {
  // Orphans of the ranks become ours, so that none outlives the job.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  take_signals();
  const bool started = start();
  if (started) {
    if (options_.timeout_s > 0) {
      timeout_at_ =
          Clock::now() + std::chrono::ceil<Clock::duration>(std::chrono::duration<double>(options_.timeout_s));
    }
  } else {
    signal_all(SIGKILL);
    ending_ = true;
  }
  loop();
  end_strays();
  return exit_code_.value_or(kDone);
}

void Job::take_signals() {
  std::signal(SIGCHLD, SIG_DFL);
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    // What our parent told us to ignore (nohup, background jobs) stays ignored.
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&mask, signal);
  }
  sigprocmask(SIG_BLOCK, &mask, &inherited_mask_);
  signals_ = Descriptor(signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
}

/// False, with exit_code_ set and the reason printed, when not all ranks could be started.
bool Job::start() {
  const auto impossible = [this](const std::string& what) {
    say(what + ": " + std::strerror(errno));
    exit_code_ = kNotPossible;
    return false;
  };
  int report[2] = {-1, -1};
  if (!signals_.open() || pipe2(report, O_CLOEXEC) != 0) return impossible("cannot watch processes");
  const Descriptor report_end(report[0]);
  Descriptor rank_report_end(report[1]);
  const pid_t launcher = getpid();
  std::vector<Descriptor> sockets;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    int pair[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return impossible("cannot make a socket");
    sockets.emplace_back(pair[0]);
    const Descriptor rank_end(pair[1]);
    const pid_t pid = fork();
    if (pid < 0) return impossible("cannot start rank " + std::to_string(rank));
    if (pid == 0) become_rank(rank, rank_end.get(), rank_report_end.get(), launcher);
    processes_.push_back({pid, true});
  }
  rank_report_end = Descriptor();
  server_ = std::make_unique<GatherServer>(std::move(sockets));
  // The pipe closes without a word when every rank has become the program.
  int reason = 0;
  ssize_t got = 0;
  while ((got = read(report_end.get(), &reason, sizeof(reason))) < 0 && errno == EINTR) {
  }
  if (got != sizeof(reason)) return true;
  say("cannot start '" + options_.command[0] + "': " + std::strerror(reason));
  exit_code_ = kBadInput;
  return false;
}

void Job::become_rank(int rank, int socket, int report, pid_t launcher) {
  // A rank dies with torii-run, however that ends; the check closes the gap before the request.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(kPeerLost);
  sigprocmask(SIG_SETMASK, &inherited_mask_, nullptr);
  fcntl(socket, F_SETFD, 0);
  setenv(job_socket::kFdVariable, std::to_string(socket).c_str(), 1);
  setenv(job_socket::kRankVariable, std::to_string(rank).c_str(), 1);
  setenv(job_socket::kRanksVariable, std::to_string(options_.ranks).c_str(), 1);
  // One reader of the terminal or pipe is all it can serve.
  if (rank != 0) {
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    if (nothing > STDERR_FILENO) close(nothing);
  }
  std::vector<char*> arguments;
  for (const std::string& argument : options_.command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int reason = errno;
  // Nobody reads it if the launcher has ended meanwhile, and then this process ends as well.
  if (write(report, &reason, sizeof(reason)) < 0) _exit(kPeerLost);
  _exit(kBadInput);
}

void Job::loop() {
  std::vector<pollfd> entries;
  while (running() > 0) {
    entries.assign(1, {signals_.get(), POLLIN, 0});
    if (server_ != nullptr) server_->watch(entries);
    std::optional<Clock::time_point> next = server_ != nullptr ? server_->deadline() : std::nullopt;
    for (const auto& at : {timeout_at_, end_at_, kill_at_}) {
      if (at && (!next || *at < *next)) next = at;
    }
    int wait_ms = -1;
    if (next) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now()).count();
      wait_ms = static_cast<int>(std::clamp<decltype(left)>(left, 0, 3'600'000));
    }
    poll(entries.data(), entries.size(), wait_ms);
    hear_signals();
    reap();
    on_deadlines();
    if (server_ != nullptr) server_->serve();
  }
}

void Job::hear_signals() {
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) continue;
    // The first is the ranks' to handle; who asks twice means it.
    if (interrupted_) {
      signal_all(SIGKILL);
    } else if (info.ssi_code != SI_KERNEL) {
      signal_all(signal);  // a terminal's signal has reached the ranks already: they share our process group
    }
    interrupted_ = true;
  }
}

void Job::reap() {
  std::vector<std::pair<int, int>> ended;  // (rank, status)
  int status = 0;
  for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG)) {
    const auto process =
        std::find_if(processes_.begin(), processes_.end(), [pid](const Process& one) { return one.pid == pid; });
    if (process == processes_.end() || !process->running) continue;
    process->running = false;
    ended.emplace_back(static_cast<int>(process - processes_.begin()), status);
  }
  // Of several that ended since the last look, those that a signal ended are more likely the cause.
  std::stable_partition(ended.begin(), ended.end(), [](const auto& one) { return WIFSIGNALED(one.second); });
  for (const auto& [rank, how] : ended) on_end(rank, how);
}

void Job::on_end(int rank, int status) {
  if (server_ != nullptr) server_->rank_ended(rank, how_it_ended(status));
  if (ending_ || exit_code_of(status) == 0) return;
  const pid_t pid = processes_[static_cast<std::size_t>(rank)].pid;
  say("rank " + std::to_string(rank) + " (process " + std::to_string(pid) + ") " + how_it_ended(status));
  // A lost peer is a consequence: the rank that was lost may be reported a moment later, and its code is the job's.
  if (!exit_code_ || exit_code_ == kPeerLost) exit_code_ = exit_code_of(status);
  if (!options_.continue_on_failure && !end_at_) end_at_ = Clock::now() + kGrace;
}

void Job::on_deadlines() {
  const Clock::time_point now = Clock::now();
  if (timeout_at_ && now >= *timeout_at_) {
    timeout_at_.reset();
    say("the timeout is over; still running: " + running_ranks());
    if (!exit_code_) exit_code_ = kTimedOut;
    end_all();
  }
  if (end_at_ && now >= *end_at_) end_all();
  if (kill_at_ && now >= *kill_at_) {
    kill_at_.reset();
    signal_all(SIGKILL);
  }
}

void Job::end_all() {
  end_at_.reset();
  if (ending_ || running() == 0) return;
  ending_ = true;
  signal_all(SIGTERM);
  signal_all(SIGCONT);  // a stopped process does not hear SIGTERM
  kill_at_ = Clock::now() + kPatience;
}

void Job::signal_all(int signal) {
  for (const Process& process : processes_) {
    if (process.running) kill(process.pid, signal);
  }
}

/// Ends what ranks have started and left behind; it was handed to us when its parent ended.
void Job::end_strays() {
  const Clock::time_point give_up = Clock::now() + kPatience;
  while (Clock::now() < give_up) {
    if (std::FILE* const list = std::fopen("/proc/thread-self/children", "re")) {
      for (int pid = 0; std::fscanf(list, "%d", &pid) == 1;) kill(pid, SIGKILL);
      std::fclose(list);
    }
    const pid_t reaped = waitpid(-1, nullptr, WNOHANG);
    if (reaped < 0) return;
    if (reaped == 0) poll(nullptr, 0, 5);
  }
}

int Job::running() const {
  return static_cast<int>(
      std::count_if(processes_.begin(), processes_.end(), [](const Process& process) { return process.running; }));
}

std::string Job::running_ranks() const {
  std::string text;
  for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
    if (!processes_[rank].running) continue;
    text += (text.empty() ? "" : ", ") + std::string("rank ") + std::to_string(rank) + " (process " +
            std::to_string(processes_[rank].pid) + ")";
  }
  return text;
}

}  // namespace

int run_job(const JobOptions& options) { return Job(options).run(); }

}  // namespace torii::tools
