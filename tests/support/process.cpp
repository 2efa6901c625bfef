// SPDX-License-Identifier: Apache-2.0
// fork, exec, and a pipe under a deadline.
#include "tests/support/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>

namespace torii::tests {

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Process::Process(const std::vector<std::string>& command, const std::vector<std::string>& environment) {
  int pipe_ends[2] = {-1, -1};
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) std::abort();
  started_s_ = now_s();
  pid_ = fork();
  if (pid_ < 0) std::abort();
  if (pid_ == 0) {
    dup2(pipe_ends[1], STDOUT_FILENO);
    dup2(pipe_ends[1], STDERR_FILENO);
    std::signal(SIGINT, SIG_DFL);  // a shell starts what runs in the background without it
    for (const std::string& entry : environment) {
      const std::size_t equals = entry.find('=');
      const std::string name = entry.substr(0, equals);
      if (equals + 1 == entry.size()) {
        unsetenv(name.c_str());
      } else {
        setenv(name.c_str(), entry.c_str() + equals + 1, 1);
      }
    }
    std::vector<char*> arguments;
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  close(pipe_ends[1]);
  output_ = pipe_ends[0];
}

Process::~Process() {
  if (pid_ > 0) {
    kill(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (output_ >= 0) close(output_);
}

void Process::kill(int signal) const {
  if (pid_ > 0) ::kill(pid_, signal);
}

Outcome Process::wait(double deadline_s) {
  Outcome outcome;
  std::array<char, 4096> piece;
  while (true) {
    const double left_s = started_s_ + deadline_s - now_s();
    pollfd entry{output_, POLLIN, 0};
    if (left_s <= 0 || poll(&entry, 1, static_cast<int>(left_s * 1000) + 1) == 0) {
      kill(SIGKILL);
      outcome.output += "\n(killed by the test's deadline)";
      break;
    }
    const ssize_t got = read(output_, piece.data(), piece.size());
    if (got <= 0) break;
    outcome.output.append(piece.data(), static_cast<std::size_t>(got));
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  outcome.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  outcome.seconds = now_s() - started_s_;
  return outcome;
}

std::vector<pid_t> children_of(pid_t pid) {
  const std::string number = std::to_string(pid);
  std::ifstream list("/proc/" + number + "/task/" + number + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; list >> child;) children.push_back(child);
  return children;
}

}  // namespace torii::tests
