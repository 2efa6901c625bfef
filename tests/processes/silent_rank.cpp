// SPDX-License-Identifier: Apache-2.0
// The program that test_silent starts as ranks, each a node of its own: the last rank is in no call for a while, or
// ends. The others say how long their calls took meanwhile, or what became of a team's memory.
// usage: silent_rank MODE MS
#include <unistd.h>
#include <torii/torii.hpp>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace {

using torii::tests::now_s;

void say_longest(const char* what, double seconds) {
  char line[96];
  const int bytes = std::snprintf(line, sizeof(line), "the longest %s took %.0f ms\n", what, seconds * 1000);
  if (write(STDOUT_FILENO, line, static_cast<std::size_t>(bytes)) != bytes) std::abort();
}

torii_call call_of(torii_collective collective) {
  torii_call call = {};
  call.size = sizeof(call);
  call.collective = collective;
  call.type = TORII_I64;
  return call;
}

void stay_silent(int silent_ms) { usleep(static_cast<useconds_t>(silent_ms) * 1000); }

/// All but the last rank wait for it in a barrier, which they test between calls of their own. Each test asks whether
/// the last rank lives.
int test_between_calls(int silent_ms) {
  constexpr int kCalls = 3000;
  torii::Context context;
  torii::Team all = context.team();
  const bool is_silent = all.rank() == all.ranks() - 1;
  torii::Team part = all.split(is_silent ? 1 : 0, 0);
  if (all.barrier() != TORII_OK) return 1;
  if (is_silent) stay_silent(silent_ms);
  torii_request* barrier = nullptr;
  const torii_call call = call_of(TORII_BARRIER);
  if (torii_start(all.handle(), &call, &barrier) != TORII_OK) return 1;
  int done = 0;
  double longest_s = 0;
  for (int i = 0; i < kCalls && !is_silent; ++i) {
    std::int64_t value = i;
    const double begun_s = now_s();
    if (torii_allreduce(part.handle(), &value, &value, 1, TORII_I64, TORII_SUM) != TORII_OK) return 1;
    longest_s = std::max(longest_s, now_s() - begun_s);
    if (value != std::int64_t{i} * part.ranks()) return 1;
    if (done == 0 && torii_test(&barrier, &done) != TORII_OK) return 1;
  }
  if (done == 0 && torii_wait(&barrier) != TORII_OK) return 1;
  if (!is_silent) say_longest("allreduce", longest_s);
  return 0;
}

/// A long broadcast to the last rank is under way on one team while all end a barrier on another.
int end_beside_another_team(int silent_ms) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  torii::Context context;
  torii::Team all = context.team();
  const bool is_silent = all.rank() == all.ranks() - 1;
  torii::Team other = all.split(0, 0);
  std::vector<std::int64_t> data(kBytes / sizeof(std::int64_t), is_silent ? 0 : 7);
  if (all.barrier() != TORII_OK || other.barrier() != TORII_OK) return 1;
  torii_call call = call_of(TORII_BROADCAST);
  call.input = data.data();
  call.result = data.data();
  call.count = data.size();
  torii_request* broadcast = nullptr;
  if (torii_start(all.handle(), &call, &broadcast) != TORII_OK) return 1;
  const double begun_s = now_s();
  if (other.barrier() != TORII_OK) return 1;
  if (is_silent) stay_silent(silent_ms);
  if (!is_silent) say_longest("barrier", now_s() - begun_s);
  if (torii_wait(&broadcast) != TORII_OK) return 1;
  return std::all_of(data.begin(), data.end(), [](std::int64_t value) { return value == 7; }) ? 0 : 1;
}

/// A team fails because the last rank dies, or aborts it, and goes. Says whether its place in this rank's arena,
/// between two allocations, was given to anybody else in the time that follows.
int outlive_a_team(bool dies, int watched_ms) {
  constexpr std::size_t kMarkBytes = std::size_t{1} << 20;
  constexpr int kRounds = 8;  // the context keeps the memory of as many short-lived teams
  torii::Context context;
  torii::Team all = context.team();
  // Memory of gone teams is looked after when one more goes.
  std::vector<torii::Team> alone;
  for (int i = 0; i < kRounds; ++i) alone.push_back(all.split(all.rank(), 0));
  const torii::Buffer<char> before = context.allocate<char>(kMarkBytes);
  torii::Team part = all.split(0, 0);
  const torii::Buffer<char> behind = context.allocate<char>(kMarkBytes);
  // The last rank leaves the first barrier and fails the team, maybe while others are still in it: only its own call
  // has to succeed.
  if (const torii_status status = part.barrier(); all.rank() == all.ranks() - 1) {
    if (status != TORII_OK) return 1;
    if (dies) kill(getpid(), SIGKILL);
    if (torii_team_abort(part.handle(), "enough") != TORII_OK) return 1;
  }
  while (part.barrier() == TORII_OK) {
  }
  torii::Team rest = part.survivors();
  part = torii::Team(nullptr);
  bool is_used = false;
  for (int round = 0; round < kRounds; ++round) {
    usleep(static_cast<useconds_t>(watched_ms / kRounds) * 1000);
    if (rest.barrier() != TORII_OK) return 1;
    alone.pop_back();
    const torii::Buffer<char> mark = context.allocate<char>(kMarkBytes);
    const char* const at = mark.span().data();
    is_used = is_used || (at > before.span().data() && at < behind.span().data());
  }
  std::printf("the place of the team is %s\n", is_used ? "used" : "kept");
  return rest.barrier() == TORII_OK ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  if (const char* const rank = std::getenv("TORII_RANK"); rank != nullptr) setenv("TORII_NODE", rank, 1);
  const std::string mode = argv[1];
  const int time_ms = std::atoi(argv[2]);
  try {
    if (mode == "probed") return test_between_calls(time_ms);
    if (mode == "beside") return end_beside_another_team(time_ms);
    if (mode == "dies" || mode == "aborts") return outlive_a_team(mode == "dies", time_ms);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "silent_rank: %s\n", error.what());
    return 3;
  }
  return 2;
}
