// SPDX-License-Identifier: Apache-2.0
// Memory and processes of this machine; checks_network.cpp has the rest.
#include "tools/torii-info/checks.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace torii::tools {
namespace {

constexpr const char* kLiftSeccomp =
    "allow it in the container's seccomp profile, e.g. docker run --security-opt seccomp=unconfined";

std::string refused(Tried outcome) { return std::string("refused: ") + std::strerror(outcome); }

Check check_memfd(const Findings& found) {
  if (found.memfd == 0) return {"memfd_create", State::ok, "allowed", ""};
  return {"memfd_create", State::blocked, refused(found.memfd), kLiftSeccomp};
}

Check check_wipe_on_fork(const Findings& found) {
  if (found.wipe_on_fork == 0) return {"MADV_WIPEONFORK", State::ok, "allowed: a forked child is recognised", ""};
  if (found.wipe_on_fork == ENOMEM) {
    return {"MADV_WIPEONFORK", State::blocked, "no page to try it on: " + refused(ENOMEM), "ulimit -v unlimited"};
  }
  return {"MADV_WIPEONFORK", State::blocked, refused(found.wipe_on_fork), "Linux 4.14 or newer"};
}

/// Every rank maps the arenas of all.
Check check_address_space(const Findings& found) {
  const std::string lift = "ulimit -v unlimited; ulimit -f unlimited; or fewer ranks";
  if (found.possible_arena_bytes == 0) return {"address space", State::blocked, found.arena_error, lift};
  const std::string text =
      fmt::format("{} arena{} of {} MiB can be mapped (TORII_ARENA={})", found.ranks, found.ranks == 1 ? "" : "s",
                  found.possible_arena_bytes >> 20, found.wanted_arena);
  if (found.possible_arena_bytes == found.wanted_arena_bytes) return {"address space", State::ok, text, ""};
  return {"address space", State::limit, text, lift};
}

Check check_shm(const Findings& found) {
  const std::string use = "torii needs none of it: its memory has no name";
  if (!found.shm_bytes) return {"/dev/shm", State::ok, "is not there; " + use, ""};
  return {"/dev/shm", State::ok, fmt::format("{} MiB; {}", *found.shm_bytes >> 20, use), ""};
}

Check check_overcommit(const Findings& found) {
  if (found.overcommit != 2) {
    return {"overcommit", State::ok, fmt::format("mode {}: address space costs nothing", found.overcommit), ""};
  }
  std::string text = "mode 2: memory is refused when it is mapped, so private tables of engines count in full";
  if (found.commit_memory) {
    text += fmt::format("; {} MiB are left of the commit limit of {} MiB", found.commit_memory->bytes >> 20,
                        found.commit_memory->limit_bytes >> 20);
  }
  return {"overcommit", State::limit, text, "sysctl vm.overcommit_memory=0"};
}

/// Teams touch some MiB of their memory; the rest of a rank's memory should suffice for other allocations of a
/// program.
Check check_group_memory(const Findings& found) {
  constexpr std::size_t kPerRank = std::size_t{256} << 20;
  if (!found.group_memory) return {"memory group", State::ok, "no control group limits memory", ""};
  const std::string text =
      fmt::format("{} MiB are left of {}", found.group_memory->bytes >> 20, found.group_memory->limit);
  if (found.group_memory->bytes / static_cast<std::size_t>(found.ranks) >= kPerRank) {
    return {"memory group", State::ok, text, ""};
  }
  return {"memory group", State::limit, text + ": allocations and plans beyond it are refused",
          "a higher limit (systemd-run -p MemoryMax, docker run --memory), or fewer ranks"};
}

Check check_locked_memory(const Findings& found) {
  if (found.locked_bytes == UINT64_MAX) return {"memlock", State::ok, "unlimited", ""};
  return {"memlock", State::limit,
          fmt::format(
              "{} KiB; shared memory and sockets lock nothing, fabrics that pin memory lock what a rank uses of its "
              "arena, at most 1 GiB or TORII_ARENA, and some MiB for each engine; in a program that calls "
              "mlockall(MCL_FUTURE) all arenas count",
              found.locked_bytes >> 10),
          "ulimit -l unlimited (for good: '* - memlock unlimited' in /etc/security/limits.conf; docker run --ulimit "
          "memlock=-1)"};
}

Check check_userfaultfd(const Findings& found) {
  if (found.userfaultfd == 0) {
    return {"userfaultfd", State::ok,
            "allowed: a thread that writes beside memory being adopted waits until that is done", ""};
  }
  const std::string what = "; while memory is being adopted, no thread may write to other data on its pages";
  if (found.userfaultfd == EPERM && !found.filters_calls) {
    return {"userfaultfd", State::limit, refused(EPERM) + what, "sysctl vm.unprivileged_userfaultfd=1"};
  }
  return {"userfaultfd", State::limit, refused(found.userfaultfd) + what,
          std::string("Linux 5.11 or newer; ") + kLiftSeccomp};
}

Check check_placement(const Findings& found) {
  const std::string nodes = fmt::format("{} NUMA node{}", found.numa_nodes, found.numa_nodes == 1 ? "" : "s");
  if (found.numa_nodes == 1) return {"memory placement", State::ok, nodes + ": nothing to choose", ""};
  if (found.place_memory == 0) {
    return {"memory placement", State::ok, nodes + "; a rank bound to one of them has its arena there", ""};
  }
  return {"memory placement", State::limit,
          fmt::format("{}; mbind is {}, so an arena's pages are on the node of the rank that touches them first", nodes,
                      refused(found.place_memory)),
          std::string("docker run --cap-add SYS_NICE, or ") + kLiftSeccomp};
}

Check check_pidfd(const Findings& found) {
  if (found.pidfd == 0) return {"pidfd_open", State::ok, "allowed: the end of a peer is seen by it too", ""};
  return {"pidfd_open", State::limit,
          refused(found.pidfd) + "; the end of a peer is seen by locks and connections alone",
          std::string("Linux 5.3 or newer; ") + kLiftSeccomp};
}

/// Reading a peer's private memory (TORII_CROSS_MEMORY).
Check check_reading_peers(const Findings& found) {
  const std::string scope =
      found.ptrace_scope ? fmt::format("yama ptrace scope {}", *found.ptrace_scope) : std::string("no yama");
  if (found.read_peer == 0) {
    return {"cross-memory", State::ok, "allowed (" + scope + "): readers can take private operands with one copy", ""};
  }
  const std::string text = fmt::format("{} ({}{}): private operands are copied twice", refused(found.read_peer), scope,
                                       found.filters_calls ? ", a seccomp filter" : "");
  if (found.ptrace_scope.value_or(0) != 0 && found.read_peer == EPERM) {
    return {"cross-memory", State::limit, text,
            "sysctl kernel.yama.ptrace_scope=0, or docker run --cap-add SYS_PTRACE; or torii_allocate, torii_register"};
  }
  return {"cross-memory", State::limit, text, std::string("docker run --cap-add SYS_PTRACE, or ") + kLiftSeccomp};
}

Check check_cpus(const Findings& found) {
  const std::string text = fmt::format("{} of {} CPUs ({}) for {} rank{}", found.cpus_allowed, found.cpus,
                                       found.cpus_text, found.ranks, found.ranks == 1 ? "" : "s");
  if (found.ranks <= found.cpus_allowed) return {"CPUs", State::ok, text + ": ranks poll long before they sleep", ""};
  return {"CPUs", State::limit, text + ": oversubscribed, ranks take turns",
          found.cpus_allowed < found.cpus
              ? "a wider cpuset or affinity (docker run --cpuset-cpus, taskset), or fewer ranks"
              : "fewer ranks, or more machines"};
}

Check check_quota(const Findings& found) {
  if (!found.quota_cpus) return {"CPU quota", State::ok, "none", ""};
  const std::string text = fmt::format("{:.3g} CPUs' worth of time for {} rank{}", *found.quota_cpus, found.ranks,
                                       found.ranks == 1 ? "" : "s");
  if (found.ranks <= *found.quota_cpus) return {"CPU quota", State::ok, text, ""};
  return {"CPU quota", State::limit, text + ": oversubscribed, ranks take turns, and are stopped when it is used up",
          "docker run --cpus, or CPUQuota= of systemd; or fewer ranks"};
}

std::string shape_text(const MachineShape& shape) {
  const auto count = [](int number, const char* what) {
    return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
  };
  return count(shape.cpus, "CPU") + ", " + count(shape.l3_groups, "third-level cache") + ", " +
         count(shape.numa_nodes, "NUMA node");
}

/// The rows of a tune table are quick on machines like the one where they were measured.
Check check_tuning(const Findings& found) {
  const std::string table = found.tune_file.empty() ? "the built-in table" : found.tune_file;
  if (!found.tune_error.empty()) {
    return {"tune table", State::blocked, found.tune_error, "unset TORII_TUNE_FILE, or torii-info tune -o FILE"};
  }
  if (!found.tuned_for) return {"tune table", State::ok, table + " does not say where it was measured", ""};
  const MachineShape& there = *found.tuned_for;
  const MachineShape& here = found.shape;
  const bool is_alike =
      there.cpus == here.cpus && there.l3_groups == here.l3_groups && there.numa_nodes == here.numa_nodes;
  const std::string measured =
      fmt::format("{} was measured on {}, with up to {} ranks", table, shape_text(there), there.ranks);
  if (is_alike && here.ranks <= there.ranks) return {"tune table", State::ok, measured + "; so is this job", ""};
  return {"tune table", State::limit,
          measured + fmt::format("; here are {}, and {} rank{}: another algorithm may be faster", shape_text(here),
                                 here.ranks, here.ranks == 1 ? "" : "s"),
          "torii-info tune --minutes 5 -o tune.json; then TORII_TUNE_FILE=tune.json (docs/tuning.md)"};
}

}  // namespace

const char* name(State state) {
  constexpr const char* kNames[] = {"ok", "limit", "blocked"};
  return kNames[static_cast<std::size_t>(state)];
}

std::vector<Check> judge_memory(const Findings& found) {
  return {check_memfd(found),         check_wipe_on_fork(found), check_address_space(found),
          check_shm(found),           check_overcommit(found),   check_group_memory(found),
          check_locked_memory(found), check_userfaultfd(found),  check_placement(found)};
}

std::vector<Check> judge_processes(const Findings& found) {
  return {check_pidfd(found), check_reading_peers(found), check_cpus(found), check_quota(found), check_tuning(found)};
}

std::vector<Check> judge(const Findings& found) {
  std::vector<Check> checks = judge_memory(found);
  for (const auto part : {judge_processes, judge_network}) {
    for (Check& check : part(found)) checks.push_back(std::move(check));
  }
  return checks;
}

}  // namespace torii::tools
