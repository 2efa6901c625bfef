// SPDX-License-Identifier: Apache-2.0
// unshare, fork, and a parent that only passes on signals.
#include "tools/torii-lab/cage.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "runtime/base/descriptor.hpp"
#include "runtime/base/split.hpp"
#include "tools/exit_codes.hpp"
#include "tools/rank_job.hpp"

namespace torii::tools {
namespace {

bool is_program(const char* name) {
  const std::string path = std::getenv("PATH") != nullptr ? std::getenv("PATH") : "/usr/sbin:/usr/bin:/sbin:/bin";
  return std::ranges::any_of(split(path, ':'), [name](std::string_view folder) {
    return access((std::string(folder) + "/" + name).c_str(), X_OK) == 0;
  });
}

/// Hides later mounts of this namespace from all others. Fails with EINVAL if / is not a mount point.
bool keep_mounts_private() { return mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0; }

/// The file systems that the inside needs; nothing changes outside.
bool prepare_mounts() {
  return keep_mounts_private() && mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0 &&
         mount("tmpfs", "/run/netns", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=755") == 0;
}

[[noreturn]] void be_inside(const std::function<int()>& inside, int alive) {
  // When the parent ends, for any reason, this process and the namespace end. The pipe shows whether the parent ended
  // before this request.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  char nothing = 0;
  if (read(alive, &nothing, 1) == 0) _exit(kNotPossible);
  if (!prepare_mounts()) {
    std::fprintf(stderr, "torii-lab: cannot mount inside a new namespace: %s\n", std::strerror(errno));
    _exit(kNotPossible);
  }
  const int code = inside();
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace

std::string why_no_laboratory() {
  if (geteuid() != 0) return "it makes network namespaces and devices, which only root may: run it as root";
  for (const char* const program : {"ip", "tc"}) {
    if (!is_program(program)) return std::string("the program ") + program + " is missing: apt-get install iproute2";
  }
  if (access("/etc/hosts", F_OK) != 0) return "there is no /etc/hosts to cover with the nodes' names: touch it";
  constexpr int kMountsShared = 255;  // no errno is as large
  const pid_t pid = fork();
  if (pid == 0) {
    if (unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS) != 0) _exit(errno);
    _exit(keep_mounts_private() ? 0 : kMountsShared);
  }
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return "this process cannot start another one";
  if (WEXITSTATUS(status) == 0) return {};
  if (WEXITSTATUS(status) == kMountsShared) {
    return "/ is no mount point, so that mounts would show outside: before `chroot DIR`, run `mount --bind DIR DIR`";
  }
  return std::string("the kernel refuses new namespaces (") + std::strerror(WEXITSTATUS(status)) +
         "): a container needs the capability SYS_ADMIN and a seccomp profile that allows unshare";
}

int run_in_cage(const std::function<int()>& inside) {
  const auto impossible = [](const char* what) {
    std::fprintf(stderr, "torii-lab: %s: %s\n", what, std::strerror(errno));
    return kNotPossible;
  };
  // iproute2 looks for names there; the folder is missing on a machine that has never had one.
  if (mkdir("/run/netns", 0755) != 0 && errno != EEXIST) return impossible("cannot make /run/netns");
  const sigset_t mask = job_signals();
  // The signals stay blocked inside too: an early signal waits until a process there reads it.
  sigprocmask(SIG_BLOCK, &mask, nullptr);
  const Descriptor signals(signalfd(-1, &mask, SFD_CLOEXEC));
  int alive[2] = {-1, -1};
  if (!signals.open() || pipe(alive) != 0) return impossible("cannot watch the laboratory");
  Descriptor read_end(alive[0]);
  const Descriptor write_end(alive[1]);
  if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) return impossible("cannot make namespaces");
  const pid_t child = fork();
  if (child < 0) return impossible("cannot start a process in the new namespace");
  if (child == 0) {
    close(write_end.get());
    be_inside(inside, read_end.get());
  }
  if (write(write_end.get(), "", 1) != 1) kill(child, SIGKILL);
  bool asked = false;
  return wait_for_job(child, signals, [&](int signal, bool from_terminal) {
    if (asked) {
      kill(child, SIGKILL);
    } else if (!from_terminal) {
      kill(child, signal);
    }
    asked = true;
  });
}

}  // namespace torii::tools
