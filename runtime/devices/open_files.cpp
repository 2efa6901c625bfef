// SPDX-License-Identifier: Apache-2.0
// Reads and raises RLIMIT_NOFILE.
#include "runtime/devices/open_files.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <algorithm>
#include <climits>
#include <vector>

#include "runtime/base/descriptor.hpp"

namespace torii {

std::size_t open_files_limit() noexcept {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<std::size_t>(std::min<rlim_t>(limit.rlim_cur, INT_MAX));
}

bool may_open_files(std::size_t count) {
  std::vector<Descriptor> all;
  while (all.size() < count) {
    all.emplace_back(all.empty() ? eventfd(0, EFD_CLOEXEC) : fcntl(all.front().get(), F_DUPFD_CLOEXEC, 0));
    if (!all.back().open()) return false;
  }
  return true;
}

void raise_open_files_limit(std::size_t wanted) noexcept {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace torii
