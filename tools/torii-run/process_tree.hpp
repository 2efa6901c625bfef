// SPDX-License-Identifier: Apache-2.0
// The processes of this machine that come from one of them, as /proc lists them.
#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

namespace torii::tools {

struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t session = 0;
};

/// The children of `ancestor`, their children, and so on, parents first. Entries that `is_left_out` are missing with
/// all that is below them. Zombies are entries. Empty without /proc.
std::vector<ProcessEntry> processes_below(pid_t ancestor, const std::function<bool(const ProcessEntry&)>& is_left_out);

}  // namespace torii::tools
