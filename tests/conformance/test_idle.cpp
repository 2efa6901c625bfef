// SPDX-License-Identifier: Apache-2.0
// Sleeps under an embedder's idle function are short: its own messages go on meanwhile. Nothing is timed here: the
// platform notes what it is asked for.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "runtime/base/platform.hpp"
#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

/// Notes the longest sleep that a rank asks for.
class Sleeps final : public Platform {
 public:
  Sleeps() { set_platform(this); }
  ~Sleeps() override { set_platform(nullptr); }
  bool join_fences() noexcept override { return true; }
  bool fence_all() noexcept override { return true; }
  void wait(const std::atomic<std::uint32_t>& word, std::uint32_t value, std::int64_t most_ns) noexcept override {
    std::int64_t longest = longest_ns.load();
    while (longest < most_ns && !longest_ns.compare_exchange_weak(longest, most_ns)) continue;
    Platform::wait(word, value, most_ns);
  }

  std::atomic<std::int64_t> longest_ns = 0;
};

/// The longest sleep of a rank that waits for another one, in a call and in a list of requests.
std::int64_t longest_sleep_ns(void (*idle)(void*)) {
  Sleeps sleeps;
  ThreadTeam options;
  options.settings = "ARENA=1G\nTIMEOUT=60\nWAIT=sleep";
  options.idle = idle;
  run_as_threads(options, [&](torii_context*, torii_team* team) {
    const bool is_late = torii_team_rank(team) == 1;
    if (is_late) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(torii_barrier(team), TORII_OK) << last_error();
    torii_call call{};
    call.size = sizeof(call);
    call.collective = TORII_BARRIER;
    torii_request* request = nullptr;
    int index = -1;
    EXPECT_EQ(torii_start(team, &call, &request), TORII_OK) << last_error();
    if (is_late) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(torii_wait_any(&request, 1, &index), TORII_OK) << last_error();
  });
  return sleeps.longest_ns;
}

TEST(Idle, SleepsUnderAnIdleFunctionAreShort) {
  EXPECT_EQ(longest_sleep_ns([](void*) {}), 50'000);
  EXPECT_EQ(longest_sleep_ns(nullptr), 1'000'000);
}

/// Of the calling thread.
thread_local std::uint64_t turns = 0;

/// A rank that waits for long calls the function once between two sleeps, however often it sleeps.
TEST(Idle, ASleepingRankHasOneTurnBetweenSleeps) {
  ThreadTeam options;
  options.settings = "ARENA=1G\nTIMEOUT=60\nWAIT=sleep";
  options.idle = [](void*) { ++turns; };
  run_as_threads(options, [&](torii_context* context, torii_team* team) {
    if (torii_team_rank(team) == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    torii_counters before{};
    torii_counters after{};
    before.size = after.size = sizeof(before);
    EXPECT_EQ(torii_context_counters(context, &before), TORII_OK) << last_error();
    turns = 0;
    EXPECT_EQ(torii_barrier(team), TORII_OK) << last_error();
    EXPECT_EQ(torii_context_counters(context, &after), TORII_OK) << last_error();
    const std::uint64_t sleeps = after.sleeps - before.sleeps;
    if (torii_team_rank(team) == 0) {
      EXPECT_GT(sleeps, 5U);
    }
    EXPECT_GE(turns, sleeps);
    EXPECT_LE(turns, sleeps + 5) << "and a few at the first polls";
  });
}

}  // namespace
}  // namespace torii::tests
