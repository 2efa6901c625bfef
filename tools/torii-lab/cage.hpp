// SPDX-License-Identifier: Apache-2.0
// What makes the laboratory disappear: all of it happens in a PID and mount namespace that die with one process.
#pragma once

#include <functional>
#include <string>

namespace torii::tools {

/// Why this process cannot make a laboratory, or nothing.
std::string why_no_laboratory();

/// Runs `inside` as the first process of new PID and mount namespaces, with a /proc of its own and an empty /run/netns,
/// and returns its result as the exit code. job_signals() are blocked inside, and passed on to it; the second one
/// kills. When it ends, or this process is killed, the kernel ends every process inside, and with them go their network
/// namespaces, devices and mounts: there is nothing that could be left.
int run_in_cage(const std::function<int()>& inside);

}  // namespace torii::tools
