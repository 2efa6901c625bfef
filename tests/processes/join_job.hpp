// SPDX-License-Identifier: Apache-2.0
// A job of join_rank processes that find each other by their environment, without a launcher of ours.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace torii::tests {

using Words = std::vector<std::string>;

/// Starts join_rank with these arguments as one rank.
std::unique_ptr<Process> start_rank(int rank, int ranks, const Words& arguments, const Words& environment);
/// All ranks of a job, to their end; by rank.
std::vector<Outcome> run_job(int ranks, const Words& arguments, const Words& environment);

/// A port of 127.0.0.1 that nobody uses now.
int free_port();
/// MASTER_ADDR and MASTER_PORT on the loopback.
Words meeting_at(int port);
Words operator+(Words left, const Words& right);

/// The local addresses on which something listens at this TCP port, as the kernel prints them, e.g. "0100007F".
Words listeners_at(int port);
/// Where a process listens for TCP.
struct Listener {
  std::string address;  ///< as the kernel prints it
  int port = 0;
};
std::vector<Listener> listeners_of(pid_t pid);
/// Waits, at most 10 s, until something listens at the port.
bool wait_for_listener(int port);

}  // namespace torii::tests
