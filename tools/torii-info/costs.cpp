// SPDX-License-Identifier: Apache-2.0
// Reads what a program's ranks log at their end.
#include "tools/torii-info/costs.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "runtime/base/counters.hpp"
#include "runtime/base/descriptor.hpp"
#include "runtime/base/status.hpp"

namespace torii::tools {
namespace {

constexpr std::size_t kCounters = std::size(kCounterTexts);
using Figures = std::array<std::uint64_t, kCounters>;

[[noreturn]] void no_resource(const char* what) {
  throw Error(Status::no_resource, std::string("cannot ") + what + ": " + strerror(errno));
}

/// The figures of a line that a context logs at its end, whatever a launcher has put before it.
std::optional<Figures> figures_of(std::string_view line) {
  if (line.find("torii info: rank ") == std::string_view::npos) return std::nullopt;
  Figures figures = {};
  for (std::size_t i = 0; i < kCounters; ++i) {
    const std::string text = std::string(kCounterTexts[i].text) + " ";
    const std::size_t found = line.find(text);
    if (found == std::string_view::npos) return std::nullopt;
    const char* const begin = line.data() + found + text.size();
    if (std::from_chars(begin, line.data() + line.size(), figures[i]).ec != std::errc()) return std::nullopt;
  }
  return figures;
}

[[noreturn]] void become(const std::vector<std::string>& command, int errors, int report) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  dup2(errors, STDERR_FILENO);
  const char* const level = std::getenv("TORII_LOG");
  if (level == nullptr || std::strcmp(level, "debug") != 0) setenv("TORII_LOG", "info", 1);
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  const int why = errno;
  (void)!write(report, &why, sizeof(why));
  _exit(127);
}

struct Child {
  pid_t pid = 0;
  Descriptor errors;  ///< what it prints to stderr
};

struct Pipe {
  Descriptor out, in;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) no_resource("make a pipe");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

Child start(const std::vector<std::string>& command) {
  Pipe errors = make_pipe();
  Pipe report = make_pipe();
  const pid_t pid = fork();
  if (pid < 0) no_resource("start a process");
  if (pid == 0) become(command, errors.in.get(), report.in.get());
  Child child = {pid, std::move(errors.out)};
  report.in = Descriptor();  // or this process would wait for itself
  int why = 0;
  if (read(report.out.get(), &why, sizeof(why)) == static_cast<ssize_t>(sizeof(why))) {
    waitpid(child.pid, nullptr, 0);
    throw Error(Status::invalid_argument, "cannot start " + command[0] + ": " + strerror(why));
  }
  return child;
}

/// Lines of the program's stderr: figures are kept, the rest is passed on.
class Reader {
 public:
  enum class Got { something, nothing, end };

  explicit Reader(Descriptor errors) : errors_(std::move(errors)) {}

  /// Waits up to `wait_ms` for something. The end comes when all processes have closed their ends.
  Got read_some(int wait_ms) {
    pollfd entry = {errors_.get(), POLLIN, 0};
    if (poll(&entry, 1, wait_ms) <= 0) return Got::nothing;
    std::array<char, 4096> part{};
    const ssize_t bytes = read(errors_.get(), part.data(), part.size());
    if (bytes < 0) return errno == EINTR ? Got::nothing : Got::end;
    text_.append(part.data(), static_cast<std::size_t>(bytes));
    for (std::size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n')) {
      take(text_.substr(0, end + 1));
      text_.erase(0, end + 1);
    }
    return bytes == 0 ? Got::end : Got::something;
  }
  /// What was read; a last line without its end is passed on.
  std::vector<Figures> finish() {
    take(text_);
    return std::move(ranks_);
  }

 private:
  void take(const std::string& line) {
    if (const auto figures = figures_of(line)) {
      ranks_.push_back(*figures);
    } else {
      std::fwrite(line.data(), 1, line.size(), stderr);
    }
  }

  Descriptor errors_;
  std::string text_;  ///< not yet a line
  std::vector<Figures> ranks_;
};

/// Reads while the program runs, and for a second at most what its processes print after it: one that lives on may keep
/// stderr open. Returns the exit code.
int read_to_end(pid_t program, Reader& reader) {
  constexpr int kLookMs = 100, kLooksAfterwards = 10;
  Reader::Got got = Reader::Got::nothing;
  int status = 0;
  pid_t ended = 0;
  while (ended != program) {
    if (got != Reader::Got::end) got = reader.read_some(kLookMs);
    ended = waitpid(program, &status, got == Reader::Got::end ? 0 : WNOHANG);
    if (ended < 0 && errno != EINTR) no_resource("learn how the program ended");
  }
  for (int look = 0; look < kLooksAfterwards && got != Reader::Got::end; ++look) got = reader.read_some(kLookMs);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

Report report_of(const std::vector<Figures>& ranks) {
  Report report;
  report.json["ranks"] = ranks.size();
  if (ranks.empty()) {
    report.text =
        "no rank told its figures: none used torii, or none destroyed its context, or the program has a log function\n";
    return report;
  }
  report.text = fmt::format("{} context{}, each counted at its end:\n", ranks.size(), ranks.size() == 1 ? "" : "s");
  report.text += fmt::format("{:<48}{:>14}{:>14}{:>14}\n", "", "least", "most", "all");
  for (std::size_t i = 0; i < kCounters; ++i) {
    const auto by_figure = [i](const Figures& a, const Figures& b) { return a[i] < b[i]; };
    const auto [least, most] = std::minmax_element(ranks.begin(), ranks.end(), by_figure);
    std::uint64_t all = 0;
    for (const Figures& rank : ranks) all += rank[i];
    report.text += fmt::format("{:<48}{:>14}{:>14}{:>14}\n", kCounterTexts[i].text, (*least)[i], (*most)[i], all);
    report.json[kCounterTexts[i].key] = {{"least", (*least)[i]}, {"most", (*most)[i]}, {"all", all}};
  }
  return report;
}

}  // namespace

Report costs(const std::vector<std::string>& command) {
  if (command.empty() || command[0].empty()) {
    throw Error(Status::invalid_argument, "there is no program to run; put it and its arguments behind --");
  }
  std::signal(SIGCHLD, SIG_DFL);  // or nobody could learn how the program ended
  Child child = start(command);
  // From a terminal they have reached the program, too, which ends as it likes.
  for (const int signal : {SIGINT, SIGQUIT}) std::signal(signal, SIG_IGN);
  Reader reader(std::move(child.errors));
  const int code = read_to_end(child.pid, reader);
  Report report = report_of(reader.finish());
  report.code = code;
  report.json["exit_code"] = report.code;
  return report;
}

}  // namespace torii::tools
