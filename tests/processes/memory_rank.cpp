// SPDX-License-Identifier: Apache-2.0
// A job of one process with little memory: what test_memory starts. Says how it ended; the exit code is 0 unless a
// signal ends it.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <torii/torii.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// Of /proc/self/status, in MiB.
std::size_t status_mib(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name)) return std::strtoull(line.c_str() + name.size(), nullptr, 10) >> 10;
  }
  return 0;
}

void say(const char* what, torii_status status) {
  std::printf("%s: %s%s%s\n", what, torii_status_name(status), status == TORII_OK ? "" : ": ",
              status == TORII_OK ? "" : torii_last_error());
  std::fflush(stdout);
}

/// Allocates pieces until one is refused.
void allocate_all(torii_context* context, std::size_t piece) {
  std::size_t pieces = 0;
  void* memory = nullptr;
  torii_status status = TORII_OK;
  while (pieces < 4096 && (status = torii_allocate(context, piece, &memory)) == TORII_OK) {
    std::memset(memory, 1, piece);
    ++pieces;
  }
  say("allocate", status);
  std::printf("allocated MiB: %zu\n", pieces * piece / kMiB);
}

/// Calls of many shapes, which put many plans in place.
void call_all(torii_context* context) {
  torii_status status = TORII_OK;
  std::vector<torii_team*> teams;
  for (int made = 0; made < 200 && status == TORII_OK; ++made) {
    teams.push_back(nullptr);
    status = torii_team_create(context, nullptr, &teams.back());
    std::vector<float> data(std::size_t{1} << 18, 1);
    for (const std::size_t count : {std::size_t{100}, std::size_t{20'000}, data.size()}) {
      if (status == TORII_OK)
        status = torii_allreduce(teams.back(), data.data(), data.data(), count, TORII_F32, TORII_SUM);
      if (status == TORII_OK) status = torii_broadcast(teams.back(), data.data(), count, TORII_F32, 0);
    }
  }
  say("calls", status);
}

}  // namespace

/// memory_rank group FOLDER [BYTES of each allocation] | address BYTES | locked | locked-limited
int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const std::string value = argc > 2 ? argv[2] : "";
  std::string settings = "ARENA=2G\nTIMEOUT=3";
  if (mode == "group") {
    std::ofstream(value + "/cgroup.procs") << getpid() << std::flush;
    if (argc == 3) settings = "ARENA=16G\nTIMEOUT=3";  // for many teams
  } else if (mode == "address") {
    const rlimit limit = {std::strtoull(value.c_str(), nullptr, 10), RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &limit);
  } else if (mode == "locked" || mode == "locked-limited") {
    if (mode == "locked-limited") {
      const rlimit limit = {4 * kMiB, 4 * kMiB};
      if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || (geteuid() == 0 && setuid(65534) != 0)) return 3;
    }
    if (mlockall(MCL_FUTURE) != 0) return 3;
  }
  torii_context_options options = {};
  options.size = sizeof(options);
  options.settings = settings.c_str();
  torii_context* context = nullptr;
  const torii_status status = torii_context_create(&options, &context);
  say("context", status);
  if (status != TORII_OK) return 0;
  std::printf("resident MiB: %zu\n", status_mib("VmRSS:"));
  if (mode == "group") {
    const std::size_t piece = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0;
    if (piece != 0) allocate_all(context, piece);
    call_all(context);
  }
  return 0;
}
