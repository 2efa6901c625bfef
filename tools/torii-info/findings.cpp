// SPDX-License-Identifier: Apache-2.0
// Each finding tries the operation itself if it can, and otherwise reads the kernel's files.
#include "tools/torii-info/findings.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>

#include "collectives/selection/catalogue.hpp"
#include "runtime/base/descriptor.hpp"
#include "runtime/base/numbers.hpp"
#include "runtime/base/settings.hpp"
#include "runtime/base/status.hpp"
#include "runtime/base/text_file.hpp"
#include "runtime/devices/control_groups.hpp"
#include "runtime/devices/cpus.hpp"
#include "runtime/devices/memory_limits.hpp"
#include "tools/torii-info/findings_network.hpp"
#include "tools/torii-info/machine.hpp"
#include "transports/shared_memory/arena.hpp"

namespace torii::tools {
namespace {

constexpr std::size_t kPage = 4096;

Tried outcome_of(long result) { return result >= 0 ? 0 : errno; }

/// Tries an operation that returns a descriptor.
Tried try_descriptor(long descriptor) {
  const Tried outcome = outcome_of(descriptor);
  const Descriptor owner(static_cast<int>(descriptor));
  return outcome;
}

/// Tries `step(page)`, which returns 0 or -1, on a page of private memory.
template <class Step>
Tried try_on_page(const Step& step) {
  void* const page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return errno;
  const Tried outcome = outcome_of(step(page));
  munmap(page, kPage);
  return outcome;
}

/// A child reads a word of this process. Yama's scope allows this to ancestors only, and peers are no ancestors either.
Tried try_reading_a_peer() {
  static volatile std::uint64_t word = 42;
  const pid_t own = getpid();
  const pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::uint64_t copy = 0;
    iovec to = {&copy, sizeof(copy)};
    iovec from = {const_cast<std::uint64_t*>(&word), sizeof(word)};
    const ssize_t got = process_vm_readv(own, &to, 1, &from, 1, 0);
    _exit(got == static_cast<ssize_t>(sizeof(copy)) ? 0 : std::min(errno, 254));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : ENOSYS;
}

bool runs_under_a_filter() {
  std::ifstream file("/proc/self/status");
  for (std::string key, value; file >> key;) {
    if (key == "Seccomp:" && file >> value) return value != "0";
  }
  return false;
}

void look_at_memory(const Settings& settings, Findings& found) {
  found.memfd = try_descriptor(memfd_create("torii-info", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  found.wipe_on_fork = try_on_page([](void* page) { return madvise(page, kPage, MADV_WIPEONFORK); });
  found.wanted_arena = bytes_text(settings.arena_bytes);
  found.wanted_arena_bytes = settings.arena_bytes;
  try {
    found.possible_arena_bytes = shared_memory::Arena::possible_bytes(settings.arena_bytes, found.ranks);
  } catch (const Error& error) {
    found.arena_error = error.what();
  }
  struct statvfs shm {};
  if (statvfs("/dev/shm", &shm) == 0) found.shm_bytes = shm.f_blocks * shm.f_frsize;
  rlimit locked{};
  getrlimit(RLIMIT_MEMLOCK, &locked);
  found.locked_bytes = locked.rlim_cur == RLIM_INFINITY ? UINT64_MAX : locked.rlim_cur;
  found.overcommit = first_value<int>("/proc/sys/vm/overcommit_memory").value_or(0);
  found.group_memory = memory_limits().group();
  found.commit_memory = memory_limits().commit();
  found.userfaultfd = try_descriptor(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
  found.place_memory = try_on_page([](void* page) {
    const int refused = shared_memory::prefer_node(page, kPage, 0);
    errno = refused;
    return refused == 0 ? 0 : -1;
  });
  const auto nodes = first_value<std::string>("/sys/devices/system/node/online");
  found.numa_nodes = std::max<int>(1, static_cast<int>(parse_cpu_list(nodes.value_or("0")).size()));
}

void look_at_processes(const Machine& machine, Findings& found) {
  found.pidfd = try_descriptor(syscall(SYS_pidfd_open, getpid(), 0));
  found.read_peer = try_reading_a_peer();
  found.ptrace_scope = first_value<int>("/proc/sys/kernel/yama/ptrace_scope");
  found.filters_calls = runs_under_a_filter();
  found.cpus = machine.cpus;
  found.cpus_allowed = machine.cpus_allowed;
  found.cpus_text = machine.allowed_list;
  for (const CpuQuota& quota : cpu_quotas()) {
    found.quota_cpus = std::min(quota.cpus, found.quota_cpus.value_or(quota.cpus));
  }
}

void look_at_tuning(const Settings& settings, const Machine& machine, Findings& found) {
  found.tune_file = settings.tune_file;
  found.shape = {std::max(machine.cpus_allowed, 1), machine.l3_groups, machine.numa_nodes, found.ranks};
  try {
    found.tuned_for = TuneTable::load(settings.tune_file).machine();
  } catch (const Error& error) {
    found.tune_error = error.what();
  }
}

}  // namespace

Findings find_out(int ranks) {
  const Settings settings = Settings::load({}, nullptr, algorithm_names());
  const Machine machine = read_machine();
  Findings found;
  found.ranks = ranks != 0 ? ranks : std::max(machine.cpus_allowed, 1);
  look_at_memory(settings, found);
  look_at_processes(machine, found);
  look_at_tuning(settings, machine, found);
  look_at_network(settings, found);
  return found;
}

}  // namespace torii::tools
