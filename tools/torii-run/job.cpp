// SPDX-License-Identifier: Apache-2.0
// Ranks on this machine: each has a socket to the launcher, through which it joins. The launcher is two processes. The
// outer one only passes on signals; it may have children that belong to somebody else. The inner one owns the ranks and
// all that they leave behind, and outlives the outer one for as long as it takes to end them.
#include "tools/torii-run/job.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/bootstrap/job_socket.hpp"
#include "tools/rank_job.hpp"
#include "tools/torii-run/gather_server.hpp"
#include "tools/torii-run/process_tree.hpp"

namespace torii::tools {
namespace {

/// What the outer process tells the inner one: a signal in one byte, with this bit if it came from a terminal.
constexpr unsigned char kFromTerminal = 0x80;

/// The inner process's part.
class Job : public RankJob {
 public:
  /// `outer`: the socket to the outer process. Ranks begin with `mask`.
  Job(const JobOptions& options, Descriptor outer, const sigset_t& mask)
      : RankJob({.speaker = options.speaker,
                 .command = options.command,
                 .processes = options.ranks,
                 .timeout_s = options.timeout_s,
                 .continue_on_failure = options.continue_on_failure,
                 .replacements = options.replacements,
                 .hears_signals = false}),
        outer_(std::move(outer)),
        mask_(mask) {}

  /// After run(): ends what the ranks have left behind, without daemons.
  void end_strays();

 private:
  bool prepare(int rank) override;
  bool become(int rank) override;
  void started() override;
  void replaced(int rank) override;
  std::string name_of(int rank, pid_t pid) const override {
    return "rank " + std::to_string(rank) + " (process " + std::to_string(pid) + ")";
  }
  void ended(int rank, const std::string& how) override {
    if (server_ != nullptr) server_->rank_ended(rank, how);
  }
  void watch(std::vector<pollfd>& entries) const override {
    if (outer_.open()) entries.push_back({outer_.get(), POLLIN, 0});
    if (server_ != nullptr) server_->watch(entries);
  }
  std::optional<Clock::time_point> deadline() const override {
    return server_ != nullptr ? server_->deadline() : std::nullopt;
  }
  void serve() override {
    hear_outer();
    if (server_ != nullptr) server_->serve();
  }
  void ending() override;
  void hear_outer();
  bool is_daemon(const ProcessEntry& one) const;
  std::vector<ProcessEntry> members() const {
    return processes_below(inner_, [this](const ProcessEntry& one) { return is_daemon(one); });
  }

  const pid_t inner_ = getpid();
  const pid_t session_ = getsid(0);
  Descriptor outer_;
  sigset_t mask_;
  sighandler_t on_broken_pipe_ = std::signal(SIGPIPE, SIG_IGN);  // the reader of our messages may end before us
  std::vector<Descriptor> detached_;                             // see ending()
  std::vector<Descriptor> sockets_;
  Descriptor rank_socket_;  // the other end of the last one
  std::unique_ptr<GatherServer> server_;
};

bool Job::prepare(int) {
  int pair[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return false;
  sockets_.emplace_back(pair[0]);
  rank_socket_ = Descriptor(pair[1]);
  return true;
}

bool Job::become(int rank) {
  // A rank ends with its launcher, for any reason; the check covers the time before the request.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != inner_) {
    errno = ESRCH;
    return false;
  }
  sigprocmask(SIG_SETMASK, &mask_, nullptr);
  std::signal(SIGPIPE, on_broken_pipe_);
  fcntl(rank_socket_.get(), F_SETFD, 0);
  setenv(job_socket::kFdVariable, std::to_string(rank_socket_.get()).c_str(), 1);
  setenv(job_socket::kRankVariable, std::to_string(rank).c_str(), 1);
  setenv(job_socket::kRanksVariable, std::to_string(rules().processes).c_str(), 1);
  return true;
}

void Job::started() {
  rank_socket_ = Descriptor();
  server_ = std::make_unique<GatherServer>(std::move(sockets_));
  sockets_.clear();
}

void Job::replaced(int rank) {
  rank_socket_ = Descriptor();
  server_->rank_replaced(rank, std::move(sockets_.back()));
  sockets_.clear();
}

void Job::hear_outer() {
  unsigned char word = 0;
  ssize_t got = -1;
  while (outer_.open() && (got = recv(outer_.get(), &word, 1, MSG_DONTWAIT)) >= 0) {
    if (got == 1) {
      hear(word & ~kFromTerminal, (word & kFromTerminal) != 0);
    } else {
      outer_ = Descriptor();  // it has ended, and nobody waits for the job any more
      kill_all();
    }
  }
}

/// A daemon has left the job on purpose: its parent has ended, and it is in a session of its own.
bool Job::is_daemon(const ProcessEntry& one) const {
  return one.parent == inner_ && one.session != session_ && !is_rank(one.session) && !is_running(one.pid);
}

/// A rank may be a wrapper whose child has a session of its own, or is about to make one. After the end of the wrapper,
/// the child would look like a daemon; so a job that ends its ranks remembers all that are below them.
void Job::ending() {
  for (const ProcessEntry& one : members()) {
    // Debian 12's C library declares neither pidfd_open() nor pidfd_send_signal().
    detached_.emplace_back(static_cast<int>(syscall(SYS_pidfd_open, one.pid, 0)));
  }
}

void Job::end_strays() {
  for (const Descriptor& one : detached_) {
    if (one.open()) syscall(SYS_pidfd_send_signal, one.get(), SIGKILL, nullptr, 0);
  }
  const auto give_up = Clock::now() + std::chrono::seconds(3);
  while (Clock::now() < give_up) {
    pid_t reaped = 0;
    // The kernel handed us the orphans of the ranks.
    while ((reaped = waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (reaped < 0) return;
    const std::vector<ProcessEntry> strays = members();
    if (strays.empty()) return;
    for (const ProcessEntry& one : strays) kill(one.pid, SIGKILL);
    poll(nullptr, 0, 5);
  }
}

[[noreturn]] void be_inner(const JobOptions& options, Descriptor outer, const sigset_t& mask) {
  // A name of its own, so that "killall -9 torii-run" leaves somebody to end the ranks.
  prctl(PR_SET_NAME, "torii-ranks");
  // Orphans of the ranks become our children, so that none outlives the job.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  // The socket tells that the outer process has ended; a stopped process must wake to hear of it.
  prctl(PR_SET_PDEATHSIG, SIGCONT);
  int code = kNotPossible;
  {
    Job job(options, std::move(outer), mask);
    code = job.run();
    job.end_strays();
  }
  _exit(code);
}

/// The outer process's part.
int run_outside(const JobOptions& options, const sigset_t& signals_of_job, const sigset_t& mask) {
  const Descriptor signals(signalfd(-1, &signals_of_job, SFD_CLOEXEC));
  int pair[2] = {-1, -1};
  const bool is_ready = signals.open() && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0;
  Descriptor outer(pair[0]);
  Descriptor inner(pair[1]);
  std::fflush(nullptr);  // or both processes print it
  const pid_t child = is_ready ? fork() : -1;
  if (child < 0) {
    std::fprintf(stderr, "%s: cannot start the job: %s%s\n", options.speaker.c_str(), std::strerror(errno),
                 errno == EMFILE ? "; raise the limit (ulimit -n)" : "");
    return kNotPossible;
  }
  if (child == 0) {
    inner = Descriptor();
    be_inner(options, std::move(outer), mask);
  }
  outer = Descriptor();
  return wait_for_job(child, signals, [&](int signal, bool from_terminal) {
    const auto word = static_cast<unsigned char>(signal | (from_terminal ? kFromTerminal : 0));
    // If it fails, the inner process has ended, and this one is about to hear of it.
    (void)send(inner.get(), &word, 1, MSG_NOSIGNAL);
  });
}

}  // namespace

int run_job(const JobOptions& options) {
  keep_standard_streams();
  std::signal(SIGCHLD, SIG_DFL);
  const sigset_t signals = job_signals();
  sigset_t mask;
  sigprocmask(SIG_BLOCK, &signals, &mask);
  const int code = run_outside(options, signals, mask);
  // A signal that comes after the job's end is for the caller.
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  return code;
}

}  // namespace torii::tools
