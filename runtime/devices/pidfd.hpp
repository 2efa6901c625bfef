// SPDX-License-Identifier: Apache-2.0
// Watches a process of this machine: a pidfd, and the question whether the process has ended.
#pragma once

#include <poll.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "runtime/base/descriptor.hpp"

namespace torii {

/// Closed, with errno set, if there is no such process or the kernel refuses.
inline Descriptor open_pidfd(pid_t pid) {
  // Debian 12's C library declares no pidfd_open().
  return Descriptor(pid > 0 ? static_cast<int>(syscall(SYS_pidfd_open, pid, 0)) : -1);
}

inline bool has_ended(const Descriptor& pidfd) noexcept {
  pollfd entry{pidfd.get(), POLLIN, 0};
  return pidfd.open() && poll(&entry, 1, 0) > 0 && entry.revents != 0;
}

}  // namespace torii
