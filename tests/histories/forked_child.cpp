// SPDX-License-Identifier: Apache-2.0
// The child's calls, and how it tells of them.
#include "tests/histories/forked_child.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>

#include "tools/collective_shape.hpp"

namespace torii::tests {
namespace {

constexpr int kAnswerMs = 20'000;
constexpr unsigned kLifeSeconds = 120;

bool are_calls_refused(torii_context* context, torii_team* team) {
  std::int64_t value = 1;
  std::int64_t sum = 0;
  const torii_call call = make_call(TORII_ALLREDUCE, &value, &sum, 1, TORII_I64);
  torii_request* request = nullptr;
  torii_team* part = nullptr;
  const torii_status statuses[] = {torii_run(team, &call),
                                   torii_barrier(team),
                                   torii_start(team, &call, &request),
                                   torii_send(team, &value, 1, TORII_I64, 0, 0),
                                   torii_transpose(team, &value, &sum, 1, 1, sizeof(value)),
                                   torii_team_split(team, 0, 0, nullptr, &part),
                                   torii_team_abort(team, "of a child"),
                                   torii_team_destroy(team),
                                   torii_progress(context, nullptr)};
  for (const torii_status status : statuses) {
    if (status != TORII_INVALID_ARGUMENT) return false;
  }
  return true;
}

}  // namespace

ForkedChild::ForkedChild(torii_context* context, torii_team* team, bool lives_on) {
  int ends[2] = {-1, -1};
  if (pipe(ends) != 0) ends[0] = ends[1] = -1;
  pid_ = fork();
  if (pid_ == 0) {
    alarm(kLifeSeconds);
    const char answer = are_calls_refused(context, team) ? 1 : 0;
    const bool is_told = write(ends[1], &answer, 1) == 1;
    while (lives_on && is_told) pause();
    _exit(0);
  }
  // Not until the pipe ends: a child that another rank forks meanwhile has it too.
  pollfd ready = {ends[0], POLLIN, 0};
  char answer = 0;
  was_refused_ = pid_ > 0 && poll(&ready, 1, kAnswerMs) == 1 && read(ends[0], &answer, 1) == 1 && answer == 1;
  close(ends[0]);
  close(ends[1]);
}

ForkedChild::~ForkedChild() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

}  // namespace torii::tests
