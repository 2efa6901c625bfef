// SPDX-License-Identifier: Apache-2.0
// Makes the laboratory disappear: everything happens in a PID and mount namespace that end with one process.
#pragma once

#include <functional>
#include <string>

namespace torii::tools {

/// Why this process cannot make a laboratory; empty if it can.
std::string why_no_laboratory();

/// Runs `inside` as the first process of new PID and mount namespaces, with a /proc of its own and an empty /run/netns,
/// and returns its result as the exit code. job_signals() are blocked inside, and forwarded to that process; a second
/// signal kills it. When it ends, or this process is killed, the kernel ends every process inside, and their network
/// namespaces, devices and mounts disappear: nothing can be left.
int run_in_cage(const std::function<int()>& inside);

}  // namespace torii::tools
