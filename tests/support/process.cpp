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
#include <map>

namespace torii::tests {

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

double patience() {
  const char* const named = std::getenv("TORII_TEST_PATIENCE");
  return named == nullptr ? 1 : std::stod(named);
}

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

namespace {

/// This program's environment with the changes, as NAME=value.
std::vector<std::string> changed_environment(const std::vector<std::string>& changes) {
  std::map<std::string, std::string> values;
  const auto set = [&](const std::string& entry) {
    const std::size_t equals = entry.find('=');
    values[entry.substr(0, equals)] = entry.substr(equals + 1);
  };
  for (char** entry = environ; *entry != nullptr; ++entry) set(*entry);
  for (const std::string& change : changes) {
    set(change);
    if (change.back() == '=') values.erase(change.substr(0, change.size() - 1));
  }
  std::vector<std::string> entries;
  for (const auto& [name, value] : values) entries.push_back(name + "=" + value);
  return entries;
}

/// As exec takes them.
std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> all;
  for (const std::string& word : words) all.push_back(const_cast<char*>(word.c_str()));
  all.push_back(nullptr);
  return all;
}

}  // namespace

Process::Process(const std::vector<std::string>& command, const std::vector<std::string>& environment) {
  int pipe_ends[2] = {-1, -1};
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) std::abort();
  // Another thread of a test may hold the allocator's locks while this one forks, so the child allocates nothing.
  const std::vector<std::string> changed = changed_environment(environment);
  const std::vector<char*> arguments = pointers(command);
  const std::vector<char*> variables = pointers(changed);
  started_s_ = now_s();
  pid_ = fork();
  if (pid_ < 0) std::abort();
  if (pid_ == 0) {
    dup2(pipe_ends[1], STDOUT_FILENO);
    dup2(pipe_ends[1], STDERR_FILENO);
    std::signal(SIGINT, SIG_DFL);  // a shell starts what runs in the background without it
    execvpe(arguments[0], arguments.data(), variables.data());
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
  deadline_s *= patience();
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

std::vector<pid_t> ranks_of(pid_t launcher) {
  const std::vector<pid_t> inner = children_of(launcher);
  return inner.empty() ? inner : children_of(inner[0]);
}

}  // namespace torii::tests
