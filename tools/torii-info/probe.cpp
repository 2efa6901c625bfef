// SPDX-License-Identifier: Apache-2.0
// Two processes join over a socket pair and run one allreduce.
#include "tools/torii-info/probe.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <torii/torii.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <utility>

#include "runtime/base/descriptor.hpp"

namespace torii::tools {
namespace {

constexpr int kDeadlineSeconds = 5;

struct Side {
  int rank;
  int socket;
};

bool send_all(int socket, const char* data, std::size_t bytes) {
  while (bytes != 0) {
    const ssize_t sent = send(socket, data, bytes, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    data += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, char* data, std::size_t bytes) {
  while (bytes != 0) {
    const ssize_t got = recv(socket, data, bytes, 0);
    if (got <= 0) return false;
    data += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

/// torii_exchange of two ranks. They take turns, so that neither blocks on a full socket.
int exchange(const void* mine, void* all, std::size_t bytes, void* data) {
  const Side& side = *static_cast<const Side*>(data);
  char* const blobs = static_cast<char*>(all);
  std::memcpy(blobs + (side.rank == 0 ? 0 : bytes), mine, bytes);
  char* const other = blobs + (side.rank == 0 ? bytes : 0);
  const char* const own = static_cast<const char*>(mine);
  const bool done = side.rank == 0 ? send_all(side.socket, own, bytes) && receive_all(side.socket, other, bytes)
                                   : receive_all(side.socket, other, bytes) && send_all(side.socket, own, bytes);
  return done ? 0 : 1;
}

/// The work of one of the two processes; the sentence is empty on success.
std::string run_rank(Side side, const std::string& transport) {
  // Settings of the environment for teams could fail for reasons that do not concern the transport.
  const std::string settings = fmt::format(
      "TRANSPORT={}\nTIMEOUT={}\nTOPOLOGY=node\nALGORITHM=auto\nSEGMENT=auto\nSLOTS=0\nWINDOW=0\nTUNE_FILE=\n"
      "DETERMINISM=run\nISA=auto\nHELPERS=0\nCROSS_MEMORY=auto\n",
      transport, kDeadlineSeconds);
  torii_context_options options = {};
  options.size = sizeof(options);
  options.rank = side.rank;
  options.ranks = 2;
  options.exchange = exchange;
  options.exchange_data = &side;
  options.settings = settings.c_str();
  torii_context* context = nullptr;
  if (torii_context_create(&options, &context) != TORII_OK) return torii_last_error();
  torii_team* team = nullptr;
  if (torii_team_create(context, nullptr, &team) != TORII_OK) return torii_last_error();
  float value = side.rank == 0 ? 1.0F : 2.0F;
  if (torii_allreduce(team, &value, &value, 1, TORII_F32, TORII_SUM) != TORII_OK) return torii_last_error();
  const std::string wrong = value == 3.0F ? "" : fmt::format("1 + 2 gave {}", value);
  if (torii_team_destroy(team) != TORII_OK || torii_context_destroy(context) != TORII_OK) return torii_last_error();
  return wrong;
}

}  // namespace

Probe probe_transport(const std::string& transport) {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return {false, std::string("no socket pair for the probe: ") + std::strerror(errno)};
  }
  Descriptor own(ends[0]);
  Descriptor child_end(ends[1]);
  const timeval deadline = {kDeadlineSeconds, 0};
  for (const int end : ends) setsockopt(end, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline));
  // The report contains the errors, so the library need not log them.
  torii_set_log([](int, const char*, void*) {}, nullptr);
  const auto begun = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child < 0) return {false, std::string("no second process for the probe: ") + std::strerror(errno)};
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(run_rank({1, child_end.get()}, transport).empty() ? 0 : 1);
  }
  child_end = Descriptor();
  const std::string failure = run_rank({0, own.get()}, transport);
  own = Descriptor();  // ends a child that still waits for this side
  int status = 0;
  waitpid(child, &status, 0);
  torii_set_log(nullptr, nullptr);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begun;
  if (!failure.empty()) return {false, failure};
  if (status != 0) return {false, "the second process of the probe failed"};
  return {true, fmt::format("two processes joined and summed a number in {:.0f} ms", took.count())};
}

}  // namespace torii::tools
