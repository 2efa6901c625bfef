// SPDX-License-Identifier: Apache-2.0
// Starts tune_perf as torii-run starts programs.
#include "tools/torii-info/tune_jobs.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "runtime/base/status.hpp"
#include "tools/exit_codes.hpp"
#include "tools/torii-run/job.hpp"

namespace torii::tools {
namespace {

namespace fs = std::filesystem;

/// Starting and ending ranks takes this part of the time, and at least 50 ms.
constexpr double kReserve = 0.03;
constexpr double kReserveLeast_s = 0.05;
/// Ranks that do not end when their time is over are ended after this part of the whole time.
constexpr double kOvertime = 0.05;
/// In less no cell can be measured.
constexpr double kBudgetLeast_s = 0.02;

/// tune_perf is beside this program in a build tree, and in ../libexec/torii of an installed bin.
std::string find_program() {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& candidate : {here / "tune_perf", here / "../libexec/torii/tune_perf"}) {
    if (fs::exists(candidate)) return candidate;
  }
  throw Error(Status::unsupported,
              "tune_perf, which measures, is neither in " + here.string() + " nor in ../libexec/torii; install it");
}

}  // namespace

MemoryFile::MemoryFile(const char* name) : file_(memfd_create(name, 0)) {
  if (file_ < 0) throw Error(Status::no_resource, std::string("cannot create a file in memory: ") + strerror(errno));
  path_ = "/proc/self/fd/" + std::to_string(file_);
}

MemoryFile::~MemoryFile() { close(file_); }

std::string MemoryFile::read() const {
  struct stat status {};
  fstat(file_, &status);
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = pread(file_, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  text.resize(done);
  return text;
}

void MemoryFile::write(std::string_view text) const {
  if (::write(file_, text.data(), text.size()) == static_cast<ssize_t>(text.size())) return;
  throw Error(Status::no_resource, std::string("cannot write a file in memory: ") + strerror(errno));
}

TuneJobs::TuneJobs(double seconds, std::string command)
    : seconds_(seconds), command_(std::move(command)), program_(find_program()) {}

double TuneJobs::left_s() const {
  const double reserve_s = std::max(kReserve * seconds_, kReserveLeast_s);
  return seconds_ - reserve_s - std::chrono::duration<double>(Clock::now() - begun_).count();
}

int TuneJobs::run(const TuneJob& job, const std::string& label) {
  if (job.budget_s < kBudgetLeast_s) return kDone;
  const MemoryFile json("torii-info tune");
  JobOptions options;
  options.speaker = "torii-info";
  options.ranks = job.ranks;
  options.timeout_s = left_s() + kOvertime * seconds_ + 0.2;
  options.command = {program_,    "--quiet",   "--budget", fmt::format("{:.3f}", job.budget_s),
                     "--json",    json.path(), "--label",  label,
                     "--command", command_};
  options.command.insert(options.command.end(), job.flags.begin(), job.flags.end());
  const int code = run_job(options);
  take(json.read());
  // Ranks that were ended because time was over have left the figures of the cells before.
  return code == kTimedOut ? kDone : code;
}

void TuneJobs::take(const std::string& text) {
  std::size_t begin = 0;
  // A rank that was ended may have left half a line.
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    const std::string line = text.substr(begin, end - begin);
    lines_.push_back(parse_tune_line(Json::parse(line)));
    raw_ += line + "\n";
    begin = end + 1;
  }
}

}  // namespace torii::tools
