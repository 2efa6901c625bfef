// SPDX-License-Identifier: Apache-2.0
// Ranks on this machine: each has a socket to the launcher, through which it joins.
#include "tools/torii-run/job.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/bootstrap/job_socket.hpp"
#include "tools/rank_job.hpp"
#include "tools/torii-run/gather_server.hpp"

namespace torii::tools {
namespace {

class Job : public RankJob {
 public:
  explicit Job(const JobOptions& options)
      : RankJob({options.speaker, options.command, options.ranks, options.timeout_s, options.continue_on_failure,
                 options.replacements}) {}

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
    if (server_ != nullptr) server_->watch(entries);
  }
  std::optional<Clock::time_point> deadline() const override {
    return server_ != nullptr ? server_->deadline() : std::nullopt;
  }
  void serve() override {
    if (server_ != nullptr) server_->serve();
  }

  const pid_t launcher_ = getpid();
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
  // A rank ends with torii-run, for any reason; the check covers the time before the request.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher_) {
    errno = ESRCH;
    return false;
  }
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

/// Ends processes that ranks have started and left behind; the kernel handed them to us when their parent ended.
void end_strays() {
  const auto give_up = RankJob::Clock::now() + std::chrono::seconds(3);
  while (RankJob::Clock::now() < give_up) {
    if (std::FILE* const list = std::fopen("/proc/thread-self/children", "re")) {
      for (int pid = 0; std::fscanf(list, "%d", &pid) == 1;) kill(pid, SIGKILL);
      std::fclose(list);
    }
    const pid_t reaped = waitpid(-1, nullptr, WNOHANG);
    if (reaped < 0) return;
    if (reaped == 0) poll(nullptr, 0, 5);
  }
}

}  // namespace

int run_job(const JobOptions& options) {
  keep_standard_streams();
  // Orphans of the ranks become our children, so that none outlives the job.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  // The job blocks its signals. One that comes after its end is for the caller.
  sigset_t mask;
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  const int code = Job(options).run();
  end_strays();
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  return code;
}

}  // namespace torii::tools
