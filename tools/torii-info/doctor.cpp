// SPDX-License-Identifier: Apache-2.0
// One function per check; each tries the thing itself where it can.
#include "tools/torii-info/doctor.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "runtime/descriptor.hpp"
#include "runtime/settings.hpp"
#include "runtime/status.hpp"
#include "tools/exit_codes.hpp"
#include "tools/torii-info/machine.hpp"
#include "transports/shared_memory/arena.hpp"

namespace torii::tools {
namespace {

/// ok; limit: works, but slower or smaller; blocked: shared memory cannot work.
enum class State { ok, limit, blocked };
constexpr const char* kStateNames[] = {"ok", "limit", "blocked"};

struct Check {
  std::string name;
  State state;
  std::string found;
  std::string lift;  ///< what to run or set; empty when ok
};

constexpr const char* kLiftSeccomp =
    "allow it in the container's seccomp profile, e.g. docker run --security-opt seccomp=unconfined";

Check check_shm() {
  struct statvfs info {};
  const std::string use = "torii needs none of it: its memory has no name";
  if (statvfs("/dev/shm", &info) != 0) return {"/dev/shm", State::ok, "is not there; " + use, ""};
  return {"/dev/shm", State::ok, fmt::format("{} MiB; {}", info.f_blocks * info.f_frsize >> 20, use), ""};
}

Check check_memfd() {
  const Descriptor file(memfd_create("torii-info", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file.open()) return {"memfd_create", State::ok, "allowed", ""};
  return {"memfd_create", State::blocked, std::string("refused: ") + std::strerror(errno), kLiftSeccomp};
}

Check check_pidfd() {
  const Descriptor watch(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  if (watch.open()) return {"pidfd_open", State::ok, "allowed: deaths of peers are noticed by it", ""};
  return {"pidfd_open", State::limit,
          fmt::format("refused: {}; deaths are noticed by sockets instead", std::strerror(errno)),
          std::string("Linux 5.3 or newer; ") + kLiftSeccomp};
}

Check check_wipe_on_fork() {
  constexpr std::size_t kPage = 4096;
  void* const page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    return {"MADV_WIPEONFORK", State::blocked, std::string("no page to try it on: ") + std::strerror(errno),
            "ulimit -v unlimited"};
  }
  const bool works = madvise(page, kPage, MADV_WIPEONFORK) == 0;
  const std::string error = std::strerror(errno);
  munmap(page, kPage);
  if (works) return {"MADV_WIPEONFORK", State::ok, "allowed: a forked child is recognised", ""};
  return {"MADV_WIPEONFORK", State::blocked, "refused: " + error, "Linux 4.14 or newer"};
}

/// Every rank maps the arenas of all.
Check check_address_space(const Settings& settings, int ranks) {
  const std::string wanted = bytes_text(settings.arena_bytes);
  const std::string arenas = fmt::format("{} arena{}", ranks, ranks == 1 ? "" : "s");
  const std::string lift = "ulimit -v unlimited; ulimit -f unlimited; or fewer ranks";
  try {
    const std::size_t possible = shared_memory::Arena::possible_bytes(settings.arena_bytes, ranks);
    const std::string found =
        fmt::format("{} of {} MiB can be mapped (TORII_ARENA={})", arenas, possible >> 20, wanted);
    if (possible == settings.arena_bytes) return {"address space", State::ok, found, ""};
    return {"address space", State::limit, found, lift};
  } catch (const Error& error) {
    return {"address space", State::blocked, error.what(), lift};
  }
}

Check check_cpus(const Machine& machine, int ranks) {
  const std::string found =
      fmt::format("{} of {} CPUs ({}) for {} ranks", machine.cpus_allowed, machine.cpus, machine.allowed_list, ranks);
  if (ranks <= machine.cpus_allowed) return {"CPUs", State::ok, found, ""};
  return {"CPUs", State::limit, found + ": oversubscribed, ranks take turns",
          machine.cpus_allowed < machine.cpus ? "a wider cpuset or affinity (docker run --cpuset-cpus, taskset), or "
                                                "fewer ranks"
                                              : "fewer ranks, or more machines"};
}

/// The quota of this process's control group, where the container shows it as its own root.
Check check_quota(const Machine& machine) {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota_us = 0;
  double period_us = 0;
  if (!(file >> quota_us >> period_us) || period_us <= 0) return {"CPU quota", State::ok, "none", ""};
  const double cpus = quota_us / period_us;
  const std::string found = fmt::format("{:.2g} CPUs' worth of time", cpus);
  if (cpus >= machine.cpus_allowed) return {"CPU quota", State::ok, found, ""};
  return {"CPU quota", State::limit, found + ": ranks that poll are stopped in the midst of calls",
          "docker run --cpus, or TORII_WAIT=sleep"};
}

Check check_locked_memory() {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return {"memlock", State::ok, "unlimited", ""};
  return {"memlock", State::limit,
          fmt::format("{} KiB; shared memory locks nothing, RDMA transports lock every region", limit.rlim_cur >> 10),
          "ulimit -l unlimited (for good: '* - memlock unlimited' in /etc/security/limits.conf)"};
}

/// Reading a peer's private memory is what the scope restricts.
Check check_ptrace() {
  std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
  int scope = 0;
  if (!(file >> scope)) return {"ptrace scope", State::ok, "not restricted by yama", ""};
  const std::string found = fmt::format("{}; this build reads no peer's private memory", scope);
  if (scope == 0) return {"ptrace scope", State::ok, found, ""};
  return {"ptrace scope", State::limit, found + ", a later one could not", "sysctl kernel.yama.ptrace_scope=0"};
}

}  // namespace

Report doctor(int ranks) {
  const Settings settings = Settings::load();
  const Machine machine = read_machine();
  if (ranks == 0) ranks = std::max(machine.cpus_allowed, 1);
  const std::vector<Check> checks = {check_memfd(), check_wipe_on_fork(),       check_address_space(settings, ranks),
                                     check_pidfd(), check_cpus(machine, ranks), check_quota(machine),
                                     check_shm(),   check_locked_memory(),      check_ptrace()};
  Report report;
  report.json = {{"ranks", ranks}, {"checks", Json::array()}};
  for (const Check& check : checks) {
    const char* const state = kStateNames[static_cast<std::size_t>(check.state)];
    report.text += fmt::format("{:<16} {:<8} {}\n", check.name, state, check.found);
    if (!check.lift.empty()) report.text += fmt::format("{:<25} to lift it: {}\n", "", check.lift);
    report.json["checks"].push_back(
        {{"name", check.name}, {"state", state}, {"found", check.found}, {"lift", check.lift}});
    if (check.state == State::blocked) report.code = kNotPossible;
  }
  report.json["possible"] = report.code == 0;
  report.text += report.code == 0 ? "shared_memory can work here\n" : "shared_memory cannot work here\n";
  return report;
}

}  // namespace torii::tools
