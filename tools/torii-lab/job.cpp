// SPDX-License-Identifier: Apache-2.0
// Starting, watching and ending the ranks. What they leave running ends with the laboratory's namespace.
#include "tools/torii-lab/job.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "runtime/exchange_wire.hpp"
#include "tools/exit_codes.hpp"
#include "tools/torii-lab/cage.hpp"

namespace torii::tools {
namespace {

using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;
// Survivors get a moment to say what they saw before they are asked to end, and another before they have to.
constexpr auto kGrace = std::chrono::seconds(1);
constexpr auto kPatience = std::chrono::seconds(3);
constexpr const char* kMeetingPort = "29500";
constexpr const char* kMpirun = "mpirun.openmpi";
/// In the laboratory's own /run/netns, so that nothing of Open MPI is left either.
constexpr const char* kMpiFolder = "/run/netns/.ompi";

void say(const std::string& sentence) { std::fprintf(stderr, "torii-lab: %s\n", sentence.c_str()); }

int exit_code_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

std::string how_it_ended(int status) {
  if (!WIFSIGNALED(status)) return fmt::format("ended with code {}", WEXITSTATUS(status));
  return fmt::format("was ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
}

/// Devices of a node that hold addresses, separated by commas.
std::string addressed_devices(const LabNode& node) {
  std::string names;
  for (const LabDevice& one : node.devices) {
    if (!one.address.empty()) names += (names.empty() ? "" : ",") + one.name;
  }
  return names.empty() ? std::string(kNodeDevice) : names;
}

/// mpirun on node 0, which reaches the others by `torii-lab enter` instead of ssh.
Words mpirun_command(const LabNetwork& network, const Words& command) {
  char self[PATH_MAX] = "";
  if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0) say("cannot find out where this program is");
  const std::string devices = addressed_devices(network.nodes[0]);
  std::string hosts;
  for (int rank = 0; rank < network.ranks; ++rank) {
    hosts += (hosts.empty() ? "" : ",") + network.nodes[static_cast<std::size_t>(rank)].host + ":1";
  }
  mkdir(kMpiFolder, 0700);
  Words words{kMpirun, "--allow-run-as-root",        "--bind-to", "none", "--host", hosts,
              "-n",    std::to_string(network.ranks)};
  const std::pair<const char*, std::string> parameters[] = {{"plm", "rsh"},
                                                            {"plm_rsh_agent", std::string(self) + " enter"},
                                                            {"orte_tmpdir_base", kMpiFolder},
                                                            {"oob_tcp_if_include", devices},
                                                            {"btl", "tcp,self"},
                                                            {"btl_tcp_if_include", devices}};
  for (const auto& [name, value] : parameters) words.insert(words.end(), {"--mca", name, value});
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

class LabJob {
 public:
  LabJob(const Laboratory& laboratory, const LabJobOptions& options)
      : laboratory_(laboratory),
        options_(options),
        command_(options.open_mpi ? mpirun_command(laboratory.network(), options.command) : options.command),
        token_(wire::hex(wire::random_nonce())) {}
  int run();

 private:
  struct Process {
    pid_t pid = 0;
    bool running = false;
  };

  bool start();
  [[noreturn]] void become_rank(int rank, int report);
  void set_environment(int rank) const;
  void hear_signals();
  void reap();
  void on_end(int rank, int status);
  void on_deadlines();
  void signal_all(int signal);
  void end_all();
  bool any_running() const { return std::ranges::any_of(processes_, &Process::running); }
  int wait_ms() const;

  const Laboratory& laboratory_;
  const LabJobOptions& options_;
  Words command_;
  std::string token_;
  std::vector<Process> processes_;
  Descriptor signals_;
  std::optional<int> exit_code_;  // decided by the first failure or the timeout
  bool ending_ = false;           // the ranks were told to end; how they end is no news
  bool interrupted_ = false;
  std::optional<Clock::time_point> timeout_at_;
  std::optional<Clock::time_point> end_at_;
  std::optional<Clock::time_point> kill_at_;
};

int LabJob::run() {
  const sigset_t mask = job_signals();
  sigprocmask(SIG_BLOCK, &mask, nullptr);
  signals_ = Descriptor(signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!start()) return *exit_code_;
  if (options_.timeout_s > 0) {
    timeout_at_ = Clock::now() + std::chrono::ceil<Clock::duration>(std::chrono::duration<double>(options_.timeout_s));
  }
  while (any_running()) {
    pollfd entry{signals_.get(), POLLIN, 0};
    poll(&entry, 1, wait_ms());
    hear_signals();
    reap();
    on_deadlines();
  }
  return exit_code_.value_or(kDone);
}

/// False, with exit_code_ set and the reason printed, when the program cannot be started.
bool LabJob::start() {
  int report[2] = {-1, -1};
  if (pipe2(report, O_CLOEXEC) != 0) {
    say(std::string("cannot watch processes: ") + std::strerror(errno));
    exit_code_ = kNotPossible;
    return false;
  }
  const Descriptor report_end(report[0]);
  {
    const Descriptor rank_end(report[1]);
    const int ranks = options_.open_mpi ? 1 : laboratory_.network().ranks;
    for (int rank = 0; rank < ranks; ++rank) {
      const pid_t pid = fork();
      if (pid == 0) become_rank(rank, rank_end.get());
      if (pid < 0) {
        say(fmt::format("cannot start rank {}: {}", rank, std::strerror(errno)));
        exit_code_ = kNotPossible;
        return false;
      }
      processes_.push_back({pid, true});
    }
  }
  // The pipe closes without a word when every rank has become the program.
  int reason = 0;
  ssize_t got = 0;
  while ((got = read(report_end.get(), &reason, sizeof(reason))) < 0 && errno == EINTR) {
  }
  if (got != sizeof(reason)) return true;
  say(fmt::format("cannot start '{}': {}", command_[0], std::strerror(reason)));
  exit_code_ = options_.open_mpi ? kNotPossible : kBadInput;
  return false;
}

void LabJob::set_environment(int rank) const {
  const LabNetwork& network = laboratory_.network();
  setenv("TORII_INTERFACE", ("=" + addressed_devices(network.nodes[0])).c_str(), 1);
  if (!network.topology.empty()) setenv("TORII_TOPOLOGY", network.topology.c_str(), 0);
  if (options_.open_mpi) {
    // Open MPI sees one rank on each host and would spin; these hosts share the CPUs of one machine.
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    return;
  }
  setenv("RANK", std::to_string(rank).c_str(), 1);
  setenv("WORLD_SIZE", std::to_string(network.ranks).c_str(), 1);
  setenv("MASTER_ADDR", network.nodes[0].addresses[0].c_str(), 1);
  setenv("MASTER_PORT", kMeetingPort, 1);
  setenv("TORII_JOB_TOKEN", token_.c_str(), 1);
}

void LabJob::become_rank(int rank, int report) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // One reader of the terminal or pipe is all it can serve.
  if (rank != 0) {
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    if (nothing > STDERR_FILENO) close(nothing);
  }
  set_environment(rank);
  std::vector<char*> arguments;
  for (std::string& argument : command_) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  if (laboratory_.enter(rank)) execvp(arguments[0], arguments.data());
  const int reason = errno;
  // Nobody reads it if the laboratory has ended meanwhile, and then this process ends as well.
  _exit(write(report, &reason, sizeof(reason)) < 0 ? kPeerLost : kBadInput);
}

int LabJob::wait_ms() const {
  std::optional<Clock::time_point> next;
  for (const auto& at : {timeout_at_, end_at_, kill_at_}) {
    if (at && (!next || *at < *next)) next = at;
  }
  if (!next) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, 3'600'000));
}

void LabJob::hear_signals() {
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) continue;
    // The first is the ranks' to handle; who asks twice means it.
    if (interrupted_) {
      signal_all(SIGKILL);
    } else if (info.ssi_code != SI_KERNEL) {
      signal_all(signal);
    }
    interrupted_ = true;
  }
}

void LabJob::reap() {
  int status = 0;
  // Orphans of the ranks come here too, because this is the first process of its namespace.
  for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG)) {
    const auto process = std::ranges::find(processes_, pid, &Process::pid);
    if (process == processes_.end() || !process->running) continue;
    process->running = false;
    on_end(static_cast<int>(process - processes_.begin()), status);
  }
}

void LabJob::on_end(int rank, int status) {
  const int code = exit_code_of(status);
  if (ending_ || code == 0) return;
  say(options_.open_mpi ? "mpirun " + how_it_ended(status) : fmt::format("rank {} {}", rank, how_it_ended(status)));
  // A lost peer is a consequence: the rank that was lost may be reported a moment later, and its code is the job's.
  if (!exit_code_ || exit_code_ == kPeerLost) exit_code_ = code;
  if (!end_at_) end_at_ = Clock::now() + kGrace;
}

void LabJob::on_deadlines() {
  const Clock::time_point now = Clock::now();
  if (timeout_at_ && now >= *timeout_at_) {
    timeout_at_.reset();
    std::string ranks;
    for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
      if (processes_[rank].running) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
    }
    say(options_.open_mpi ? "the timeout is over" : "the timeout is over; still running: rank " + ranks);
    if (!exit_code_) exit_code_ = kTimedOut;
    end_all();
  }
  if (end_at_ && now >= *end_at_) end_all();
  if (kill_at_ && now >= *kill_at_) {
    kill_at_.reset();
    signal_all(SIGKILL);
  }
}

void LabJob::end_all() {
  end_at_.reset();
  if (ending_ || !any_running()) return;
  ending_ = true;
  signal_all(SIGTERM);
  signal_all(SIGCONT);  // a stopped process does not hear SIGTERM
  kill_at_ = Clock::now() + kPatience;
}

void LabJob::signal_all(int signal) {
  for (const Process& process : processes_) {
    if (process.running) kill(process.pid, signal);
  }
}

}  // namespace

int run_lab_job(const Laboratory& laboratory, const LabJobOptions& options) {
  return LabJob(laboratory, options).run();
}

}  // namespace torii::tools
