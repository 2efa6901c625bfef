// SPDX-License-Identifier: Apache-2.0
// Processes that run histories one after the other and write a line about each.
#include "tools/torii-sim/faults/run.hpp"

#include <poll.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/descriptor.hpp"
#include "runtime/base/numbers.hpp"
#include "runtime/base/split.hpp"
#include "runtime/base/status.hpp"

namespace torii::faults {
namespace {

/// Ranks that die leave their memory behind: after so many histories a process ends, and another one goes on.
constexpr std::uint64_t kHistoriesPerProcess = 100;

/// CPU time that a history may take. On a busy machine the clock says nothing about the history; it only ends a process
/// that waits, which no history does.
constexpr unsigned kSecondsMost = 20;
constexpr unsigned kSecondsByClock = 30 * kSecondsMost;

/// This process ends by a signal if it takes longer than a history may.
void limit_time() {
  itimerval limit{};
  limit.it_value.tv_sec = kSecondsMost;
  setitimer(ITIMER_PROF, &limit, nullptr);
  alarm(kSecondsByClock);
}

using Json = nlohmann::json;

void write_all(int to, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = write(to, text.data() + at, text.size() - at);
    if (written < 0 && errno != EINTR) _exit(1);
    if (written > 0) at += static_cast<std::size_t>(written);
  }
}

Json json_of(const History& history, const Verdict& verdict) {
  Json line = {{"seed", history.seed}, {"deaths", verdict.deaths}, {"failures", verdict.failures}};
  for (const NamedCount& one : kCounts) line[one.name] = verdict.counts.*one.count;
  for (const Fault& fault : history.faults) line["faults"].push_back(text_of(fault.kind));
  return line;
}

/// A child that runs some histories and writes a line before and after each.
struct Worker {
  pid_t pid = -1;
  Descriptor lines;
  std::string unread;
  std::uint64_t next = 0;  ///< the seed that it runs, or will run
  std::uint64_t end = 0;
};

[[noreturn]] void work(std::uint64_t first, std::uint64_t end, int to) {
  for (std::uint64_t seed = first; seed < end; ++seed) {
    limit_time();
    const History history = draw_history(seed);
    write_all(to, json_of(history, run(history)).dump() + "\n");
  }
  _exit(0);
}

void start(Worker& worker, std::uint64_t first, std::uint64_t end) {
  int ends[2];
  if (pipe(ends) != 0) throw Error(Status::no_resource, std::string("cannot open a pipe: ") + std::strerror(errno));
  worker.pid = fork();
  if (worker.pid < 0) throw Error(Status::no_resource, std::string("cannot start a process: ") + std::strerror(errno));
  if (worker.pid == 0) {
    close(ends[0]);
    work(first, end, ends[1]);
  }
  close(ends[1]);
  worker.lines = Descriptor(ends[0]);
  worker.unread.clear();
  worker.next = first;
  worker.end = end;
}

std::string text_of_lines(const Json& lines) {
  std::string text;
  for (const auto& line : lines) text += "  " + line.get<std::string>() + "\n";
  return text;
}

void count(const std::string& text, Tally& tally) {
  const Json line = Json::parse(text);
  for (const NamedCount& one : kCounts) tally.counts.*one.count += line[one.name].get<std::uint64_t>();
  if (line.contains("faults")) {
    for (const auto& kind : line["faults"]) ++tally.faults[kind.get<std::string>()];
  }
  for (const auto& phase : line["deaths"]) ++tally.deaths[phase.get<std::string>()];
  if (!line["failures"].empty()) {
    tally.failures.push_back({line["seed"].get<std::uint64_t>(), text_of_lines(line["failures"])});
  }
}

std::string end_text(int status) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF) {
    return "takes more than " + std::to_string(kSecondsMost) + " s of CPU time";
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
    return "waits: no end after " + std::to_string(kSecondsByClock) + " s";
  }
  if (WIFSIGNALED(status)) return std::string("crashes: ") + strsignal(WTERMSIG(status));
  return "ends its process with code " + std::to_string(WEXITSTATUS(status));
}

/// Reads what the worker has written. False: it has ended.
bool read_lines(Worker& worker, Tally& tally) {
  char bytes[1 << 16];
  const ssize_t count_read = read(worker.lines.get(), bytes, sizeof(bytes));
  if (count_read < 0 && errno == EINTR) return true;
  if (count_read <= 0) return false;
  worker.unread.append(bytes, static_cast<std::size_t>(count_read));
  for (std::size_t at = 0; (at = worker.unread.find('\n')) != std::string::npos;) {
    count(worker.unread.substr(0, at), tally);
    worker.unread.erase(0, at + 1);
    ++worker.next;
  }
  return true;
}

void end(Worker& worker, Tally& tally) {
  int status = 0;
  while (waitpid(worker.pid, &status, 0) < 0 && errno == EINTR) {
  }
  worker.pid = -1;
  worker.lines = Descriptor();
  if (worker.next < worker.end) {
    tally.failures.push_back({worker.next, "  " + end_text(status) + "\n"});
    ++tally.counts.histories;
    ++worker.next;
  }
}

}  // namespace

Tally run(const Run& all, const std::function<void(const Tally&)>& progress) {
  Tally tally;
  std::vector<Worker> workers(static_cast<std::size_t>(all.processes));
  std::uint64_t next = all.first;
  while (true) {
    const bool goes_on = tally.failures.size() < all.failures_most;
    std::vector<pollfd> entries;
    for (Worker& worker : workers) {
      if (worker.pid < 0 && goes_on && worker.next < worker.end) {
        start(worker, worker.next, worker.end);  // it went on from a crash
      } else if (worker.pid < 0 && goes_on && next <= all.last) {
        const std::uint64_t end = std::min(next + kHistoriesPerProcess, all.last + 1);
        start(worker, next, end);
        next = end;
      }
      entries.push_back({worker.lines.get(), POLLIN, 0});
    }
    const auto is_idle = [](const Worker& worker) { return worker.pid < 0; };
    if (std::ranges::all_of(workers, is_idle)) break;
    if (!goes_on) {
      for (const Worker& worker : workers) {
        if (worker.pid > 0) kill(worker.pid, SIGKILL);
      }
    }
    constexpr int kReportEveryMs = 1000;
    poll(entries.data(), entries.size(), kReportEveryMs);
    for (std::size_t i = 0; i < workers.size(); ++i) {
      if (entries[i].revents == 0 || read_lines(workers[i], tally)) continue;
      const bool was_killed = !goes_on;
      if (was_killed) workers[i].next = workers[i].end;
      end(workers[i], tally);
    }
    progress(tally);
  }
  std::ranges::sort(tally.failures, {}, &Failure::seed);
  return tally;
}

Replay replay(const History& history) {
  int ends[2];
  if (pipe(ends) != 0) throw Error(Status::no_resource, std::string("cannot open a pipe: ") + std::strerror(errno));
  const pid_t pid = fork();
  if (pid < 0) throw Error(Status::no_resource, std::string("cannot start a process: ") + std::strerror(errno));
  if (pid == 0) {
    close(ends[0]);
    limit_time();
    const Verdict verdict = run(history);
    std::string text = std::to_string(verdict.digest) + "\n";
    for (const std::string& line : verdict.failures) text += "  " + line + "\n";
    write_all(ends[1], text);
    _exit(0);
  }
  close(ends[1]);
  const Descriptor lines(ends[0]);
  std::string text;
  char bytes[1 << 12];
  for (ssize_t got = 0; (got = read(lines.get(), bytes, sizeof(bytes))) != 0;) {
    if (got > 0) text.append(bytes, static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) break;
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return {text + "  " + end_text(status) + "\n", 0};
  std::string_view rest = text;
  const std::uint64_t digest = take_number<std::uint64_t>(rest).value_or(0);
  return {std::string(rest.substr(1)), digest};
}

void leave_out(History& history, const std::string& names) {
  if (names.empty()) return;
  std::vector<std::size_t> faults;
  for (const std::string_view name : split(names, ',')) {
    std::string_view rest = name.substr(std::min<std::size_t>(1, name.size()));
    const std::optional<std::size_t> number = take_number<std::size_t>(rest);
    const bool is_step = name.starts_with('s') && number && rest.empty() && *number < history.steps.size();
    const bool is_fault = name.starts_with('f') && number && rest.empty() && *number < history.faults.size();
    if (is_step) history.steps[*number].is_left_out = true;
    if (is_fault) faults.push_back(*number);
    if (!is_step && !is_fault) {
      const std::string last_fault = std::to_string(history.faults.size() - 1);
      throw Error(Status::invalid_argument,
                  "'" + std::string(name) + "' names no part of history " + std::to_string(history.seed) +
                      ", which has steps s0 to s" + std::to_string(history.steps.size() - 1) +
                      (history.faults.empty() ? " and no faults" : " and faults f0 to f" + last_fault));
    }
  }
  std::ranges::sort(faults, std::greater<>());
  for (const std::size_t fault : faults)
    history.faults.erase(history.faults.begin() + static_cast<std::ptrdiff_t>(fault));
}

std::string shorten(const History& history) {
  std::vector<std::string> parts;
  for (std::size_t fault = history.faults.size(); fault-- > 0;) parts.push_back("f" + std::to_string(fault));
  for (std::size_t step = history.steps.size(); step-- > 0;) parts.push_back("s" + std::to_string(step));
  std::string names;
  for (const std::string& part : parts) {
    const std::string more = names + (names.empty() ? "" : ",") + part;
    History shorter = history;
    leave_out(shorter, more);
    if (!replay(shorter).failure.empty()) names = more;
  }
  return names;
}

}  // namespace torii::faults
