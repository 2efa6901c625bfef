// SPDX-License-Identifier: Apache-2.0
// The calls of failure_rank.
#include "tests/processes/failure_calls.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tests/support/process.hpp"
#include "tools/collective_shape.hpp"

namespace torii::tests {

void say(const std::string& line) {
  const std::string whole = line + "\n";
  if (write(STDOUT_FILENO, whole.data(), whole.size()) < 0) std::abort();
}

void say_time(const char* what) {
  char line[64];
  std::snprintf(line, sizeof(line), "%s at %.6f", what, now_s());
  say(line);
}

void say_event() { say_time("event"); }

/// The TCP stream of this process that has carried most, or -1.
static int busiest_stream() {
  constexpr int kDescriptors = 1024;
  constexpr int kEstablished = 1;
  int busiest = -1;
  std::uint64_t most = 0;
  for (int descriptor = 3; descriptor < kDescriptors; ++descriptor) {
    tcp_info info = {};
    socklen_t length = sizeof(info);
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) continue;
    if (info.tcpi_state != kEstablished || info.tcpi_bytes_acked + info.tcpi_bytes_received <= most) continue;
    most = info.tcpi_bytes_acked + info.tcpi_bytes_received;
    busiest = descriptor;
  }
  return busiest;
}

void cut_busiest_stream() {
  say_event();
  if (shutdown(busiest_stream(), SHUT_RDWR) != 0) say("there is no stream to cut");
}

void deafen_busiest_stream() {
  sock_filter drop_all[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
  const sock_fprog filter = {1, drop_all};
  say_event();
  if (setsockopt(busiest_stream(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) != 0) {
    say("there is no stream to deafen");
  }
}

static std::string child_kind() {
  const char* const named = std::getenv("FAILURE_CHILD");
  return named == nullptr ? "" : named;
}

/// For 3 s, as this program or as another one. The output is a pipe that the test reads to its end.
static void live_silently(bool execs) {
  const int nothing = open("/dev/null", O_RDWR);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, standard);
  if (execs) execl("/bin/sleep", "sleep", "3", nullptr);
  sleep(3);
  _exit(0);
}

void leave_child() {
  const std::string kind = child_kind();
  if (kind == "background" && std::system("sleep 3 >/dev/null 2>&1 </dev/null &") != 0) std::abort();
  if (kind == "exec" || (kind == "fork" && fork() == 0)) live_silently(kind == "exec");
}

/// The team of all ranks. With FAILURE_LATE_TEAM, a time in microseconds, the chosen rank comes so much later to a
/// first one, which fails on all.
static torii::Team make_team(const torii::Context& context, int chosen) {
  const char* const late_us = std::getenv("FAILURE_LATE_TEAM");
  if (late_us == nullptr) return context.team();
  if (context.rank() == chosen) usleep(static_cast<useconds_t>(std::atoi(late_us)));
  try {
    (void)context.team();
    say("nobody came late");
  } catch (const torii::Failure& failure) {
    say(std::string("no first team: ") + failure.what());
  }
  return context.team();
}

FailureCalls::FailureCalls(const Arguments& arguments)
    : arguments_(arguments), team_(make_team(context_, arguments.rank)), input_(arguments.count, team_.rank()) {
  result_.resize(input_.size());
  if (!chosen() || child_kind() != "adopts") return;
  adopted_.push_back(context_.adopt(std::span(input_)));
  if (fork() == 0) live_silently(false);
}

std::thread FailureCalls::later(std::function<void()> action) const {
  if (!chosen()) return {};
  return std::thread([action = std::move(action), delay_us = arguments_.delay_us] {
    usleep(static_cast<useconds_t>(delay_us));
    action();
  });
}

torii_call FailureCalls::allreduce_call() {
  return make_call(TORII_ALLREDUCE, input_.data(), result_.data(), input_.size(), TORII_I64);
}

void FailureCalls::say_status(torii_status status) const {
  char time[32];
  std::snprintf(time, sizeof(time), "%.6f", now_s());
  say("rank " + std::to_string(team_.rank()) + " at " + time + " got " + torii_status_name(status) + ": " +
      torii_last_error());
}

torii_status FailureCalls::call_until_failure() {
  torii_status status = TORII_OK;
  torii_call call = allreduce_call();
  if (std::getenv("FAILURE_ALLTOALL") != nullptr) {
    call.collective = TORII_ALLTOALL;
    call.count /= static_cast<std::size_t>(team_.ranks());
  }
  while (status == TORII_OK) status = team_.run(call);
  say_status(status);
  return status;
}

bool FailureCalls::is_poisoned() {
  const torii_call call = allreduce_call();
  torii_request* request = nullptr;
  torii_team* part = nullptr;
  // A call that the rank refuses by itself is refused first: a forced ring has no barrier.
  const char* const forced = std::getenv("TORII_ALGORITHM");
  const torii_status barrier = forced != nullptr && std::string(forced) == "ring" ? TORII_UNSUPPORTED : TORII_POISONED;
  const bool poisoned = team_.run(call) == TORII_POISONED && team_.barrier() == barrier &&
                        torii_start(team_.handle(), &call, &request) == TORII_POISONED && request == nullptr &&
                        torii_prepare(team_.handle(), &call, &request) == TORII_POISONED && request == nullptr &&
                        torii_team_split(team_.handle(), 0, 0, nullptr, &part) == TORII_POISONED && part == nullptr;
  const std::string text = torii_last_error();
  return poisoned && text.find("poisoned: ") != std::string::npos && text.find("survivors") != std::string::npos;
}

bool FailureCalls::survivors_work(int expected_ranks) {
  torii::Team survivors = team_.survivors();
  say_time("survivors agreed");
  if (survivors.ranks() != expected_ranks) {
    say("the team of survivors has " + std::to_string(survivors.ranks()) + " ranks");
    return false;
  }
  if (survivors.run(allreduce_call()) != TORII_OK) return false;
  say_time("called again");
  for (int call = 0; call < 20; ++call) {
    std::vector<std::int64_t> data(call % 2 == 0 ? 3 : 20'000, survivors.rank() + call);
    if (survivors.allreduce(std::span(data)) != TORII_OK) {
      say_status(TORII_INTERNAL);
      return false;
    }
    const std::int64_t sum = expected_ranks * (expected_ranks - 1) / 2 + expected_ranks * call;
    for (const std::int64_t value : data) {
      if (value != sum) return false;
    }
  }
  torii_team* again = nullptr;
  return torii_team_survivors(team_.handle(), nullptr, &again) == TORII_INVALID_ARGUMENT;
}

int FailureCalls::survivors_differ() {
  torii_team_options options = {};
  options.size = sizeof(options);
  options.algorithm = chosen() ? "ring" : "node";
  torii_team* survivors = nullptr;
  const torii_status status = torii_team_survivors(team_.handle(), &options, &survivors);
  say_status(status);
  return status == TORII_MISMATCH && survivors == nullptr ? 0 : 1;
}

/// The members that died are known, and the team says that it failed.
bool FailureCalls::knows_lost(int expected) const {
  const std::vector<int> lost = team_.lost();
  const torii_status health = team_.health();
  say("health " + std::string(torii_status_name(health)) + ", " + std::to_string(lost.size()) + " lost");
  return health != TORII_OK && health != TORII_POISONED && lost.size() == static_cast<std::size_t>(expected) &&
         (expected != 1 || lost[0] == arguments_.rank);
}

int FailureCalls::end(int expected_survivors) {
  if (!is_poisoned()) {
    say("not poisoned: " + std::string(torii_last_error()));
    return 1;
  }
  if (!knows_lost(team_.ranks() - expected_survivors)) return 1;
  if (!survivors_work(expected_survivors)) return 1;
  say("survivors work");
  return 0;
}

torii_status FailureCalls::worse(torii_status before, torii_status now) {
  if (now == TORII_OK) return before;
  if (before == TORII_OK) say_status(now);
  if (before != TORII_OK && before != now) say("statuses differ");
  return before == TORII_OK || before == now ? now : TORII_INTERNAL;
}

torii_status FailureCalls::run_persistent(const torii_call& call) {
  torii_request* request = nullptr;
  torii_status status = torii_prepare(team_.handle(), &call, &request);
  if (status == TORII_OK) status = torii_restart(request);
  if (status == TORII_OK) status = torii_wait(&request);
  // A rank may be through with its call before the others have seen what is wrong; its next call tells it.
  if (status == TORII_OK) status = team_.barrier();
  say_status(status);
  if (request != nullptr && torii_request_free(&request) != TORII_OK) std::abort();
  return status;
}

}  // namespace torii::tests
