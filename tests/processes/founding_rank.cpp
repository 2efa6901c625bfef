// SPDX-License-Identifier: Apache-2.0
// The program that test_founding_processes starts as 3 ranks of one node: they found a team by a number, and one of
// them dies or is stopped meanwhile. Then those that live found one again.
// usage: founding_rank RANK WHAT WHEN. WHAT is dies or stops (for 2 s); WHEN is before its founding or inside.
// Inside it has come, and waits for another rank that comes later.
#include <signal.h>
#include <torii/torii.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/process.hpp"

namespace {

using torii::tests::now_s;

constexpr int kRanks = 3;
constexpr useconds_t kSoonUs = 150'000;
constexpr useconds_t kLaterUs = 400'000;
constexpr useconds_t kStopUs = 2'000'000;

void say(int rank, const char* what, torii_status status, double begun_s) {
  // One write per line, so that the lines of ranks on one pipe stay whole.
  char line[1024];
  const int bytes = std::snprintf(line, sizeof(line), "rank %d after %.3f s: %s: %s: %s\n", rank, now_s() - begun_s,
                                  what, torii_status_name(status), status == TORII_OK ? "" : torii_last_error());
  if (write(STDOUT_FILENO, line, static_cast<std::size_t>(bytes)) < 0) std::abort();
}

/// Stops this process after a while, and lets it go on.
void stop_soon() {
  const pid_t rank = getpid();
  if (fork() != 0) return;
  usleep(kSoonUs);
  kill(rank, SIGSTOP);
  usleep(kStopUs);
  kill(rank, SIGCONT);
  _exit(0);
}

torii_status found(torii_context* context, const std::vector<int>& members) {
  torii_team_options options = {};
  options.size = sizeof(options);
  options.members = members.data();
  options.member_count = static_cast<int>(members.size());
  options.number = 11;
  torii_team* team = nullptr;
  torii_status status = torii_team_create(context, &options, &team);
  if (status == TORII_OK) status = torii_barrier(team);
  if (status == TORII_OK) status = torii_team_destroy(team);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int chosen = std::atoi(argv[1]);
  const bool dies = argv[2] == std::string("dies");
  const bool is_inside = argv[3] == std::string("inside");
  torii_context* context = nullptr;
  if (torii_context_create(nullptr, &context) != TORII_OK || torii_context_ranks(context) != kRanks) return 3;
  const int rank = torii_context_rank(context);
  // All have mapped all by now.
  torii_team* all = nullptr;
  if (torii_team_create(context, nullptr, &all) != TORII_OK || torii_barrier(all) != TORII_OK) return 3;
  const double begun_s = now_s();
  if (rank == chosen && dies && !is_inside) kill(getpid(), SIGKILL);
  if (rank == chosen && dies) {
    std::thread([] {
      usleep(kSoonUs);
      kill(getpid(), SIGKILL);
    }).detach();
  }
  if (rank == chosen && !dies) stop_soon();
  if (rank == chosen && !is_inside) usleep(2 * kSoonUs);  // and is stopped meanwhile
  if (is_inside && rank == (chosen + 1) % kRanks) usleep(kLaterUs);
  torii_status status = found(context, {2, 0, 1});
  say(rank, "first", status, begun_s);
  std::vector<int> living;
  for (const int one : {2, 0, 1}) {
    if (one != chosen || !dies) living.push_back(one);
  }
  for (int attempt = 0; attempt < 5 && (status != TORII_OK || dies); ++attempt) {
    status = found(context, living);
    if (status == TORII_OK) break;
  }
  say(rank, "last", status, begun_s);
  return 0;
}
