// SPDX-License-Identifier: Apache-2.0
// Two threads of a rank on a team that has one caller at a time: the second one is refused, and nothing else happens.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/numbered_operation.hpp"
#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

using namespace std::chrono_literals;

const char* const kSecond = "another call of this rank is under way on this team";

/// Set by the thread that waits in a call.
thread_local std::atomic<bool>* is_inside = nullptr;
void say_inside(void*) {
  if (is_inside != nullptr) *is_inside = true;
}

/// A request of the first caller: persistent and not running, or started.
struct Held {
  torii_request* request;
  bool is_running;
};
using Second = std::function<void(torii_context*, torii_team*, const Held&)>;

/// Rank 0 is in a call, in which it waits for rank 1, while `second` runs on another thread of rank 0. Whatever that
/// does is no call of the rank: the call ends well, and so do the next ones.
void beside_a_call(const std::string& settings, const Second& second) {
  std::atomic<int> over = 0;
  ThreadTeam options = team_of(2, settings);
  options.idle = say_inside;
  run_as_threads(options, [&](torii_context* context, torii_team* team) {
    const int rank = torii_team_rank(team);
    std::int64_t one = 1;
    std::int64_t sum = 0;
    Operation started(100, rank, 1);
    Operation repeated(100, rank, 2);
    const torii_call call = started.call();
    const torii_call repeated_call = repeated.call();
    torii_request* persistent = nullptr;
    ASSERT_EQ(torii_prepare(team, &repeated_call, &persistent), TORII_OK) << last_error();
    // So that the call repeats the last one, on each channel.
    for (int i = 0; i < 4; ++i) ASSERT_EQ(torii_allreduce(team, &one, &sum, 1, TORII_I64, TORII_SUM), TORII_OK);
    for (const bool has_started : {false, true}) {
      if (has_started) {
        ASSERT_EQ(torii_start(team, &call, &started.request), TORII_OK) << last_error();
      }
      std::atomic<bool> is_waiting = false;
      std::thread other;
      if (rank == 0) {
        is_inside = &is_waiting;
        other = std::thread([&] {
          while (!is_waiting) std::this_thread::sleep_for(1ms);
          second(context, team, {has_started ? started.request : persistent, has_started});
          ++over;
        });
      } else {
        while (over < (has_started ? 2 : 1)) std::this_thread::sleep_for(1ms);
      }
      sum = 0;
      EXPECT_EQ(torii_allreduce(team, &one, &sum, 1, TORII_I64, TORII_SUM), TORII_OK) << last_error();
      EXPECT_EQ(sum, 2);
      if (other.joinable()) other.join();
      is_inside = nullptr;
      EXPECT_EQ(torii_wait(&started.request), TORII_OK) << last_error();
      EXPECT_EQ(torii_barrier(team), TORII_OK) << last_error();
    }
    EXPECT_TRUE(started.is_right(2, 1));
    EXPECT_EQ(torii_request_free(&persistent), TORII_OK) << last_error();
  });
}

void expect_second(torii_status status) {
  EXPECT_EQ(status, TORII_INVALID_ARGUMENT);
  EXPECT_NE(last_error().find(kSecond), std::string::npos) << last_error();
}

/// Calls that make or use no request of the first caller.
void expect_calls_refused(torii_team* team) {
  std::int64_t value = 1;
  std::int64_t sum = 0;
  const torii_call call = make_call(TORII_ALLREDUCE, &value, &sum, 1, TORII_I64);
  torii_request* made = nullptr;
  // The same call as the one under way, on the shorter way, and others.
  expect_second(torii_allreduce(team, &value, &sum, 1, TORII_I64, TORII_SUM));
  expect_second(torii_barrier(team));
  expect_second(torii_broadcast(team, &value, 1, TORII_I64, 0));
  expect_second(torii_run(team, &call));
  expect_second(torii_start(team, &call, &made));
  expect_second(torii_prepare(team, &call, &made));
  expect_second(torii_send(team, &value, 1, TORII_I64, 1, 0));
  expect_second(torii_start_recv(team, &value, 1, TORII_I64, 1, 0, nullptr, &made));
  EXPECT_EQ(made, nullptr);
  torii_team* part = nullptr;
  expect_second(torii_team_split(team, 0, 0, nullptr, &part));
  expect_second(torii_team_survivors(team, nullptr, &part));
  expect_second(torii_team_destroy(team));
  torii_choice choice = {};
  choice.size = sizeof(choice);
  expect_second(torii_choose(team, &call, &choice));
  torii_leaves* leaves = nullptr;
  expect_second(torii_leaves_create(team, 2, 0, 1, &leaves));
  std::uint64_t destination = 0;
  expect_second(torii_transpose(team, &value, &sum, 1, 2, sizeof(value)));
  expect_second(torii_permute(team, &value, 1, &destination, &sum, 1, sizeof(value)));
  EXPECT_EQ(torii_group_begin(team), TORII_OK);
  EXPECT_EQ(torii_allreduce(team, &value, &sum, 1, TORII_I64, TORII_SUM), TORII_OK);
  expect_second(torii_group_end(team));
  // Refused for reasons of their own: no calls of this rank either, while another one is under way.
  EXPECT_EQ(torii_run(team, nullptr), TORII_INVALID_ARGUMENT);
  EXPECT_EQ(torii_start(team, &call, nullptr), TORII_INVALID_ARGUMENT);
  EXPECT_EQ(torii_refuse(team, "a binding's reason"), TORII_INVALID_ARGUMENT);
}

void expect_waits_refused(torii_request* request) {
  torii_request* list[] = {nullptr, request};
  int answer = 1;
  int indices[2] = {};
  expect_second(torii_wait(&list[1]));
  expect_second(torii_wait_for(&list[1], 0.01, &answer));
  EXPECT_EQ(answer, 0);
  expect_second(torii_test(&list[1], &answer));
  EXPECT_EQ(answer, 0);
  expect_second(torii_test_any(list, 2, &answer));
  expect_second(torii_wait_any(list, 2, &answer));
  expect_second(torii_test_all(list, 2, &answer));
  expect_second(torii_wait_all(list, 2));
  expect_second(torii_wait_some(list, 2, indices, nullptr, &answer));
  expect_second(torii_request_on_done(
      request, [](torii_status, void*) {}, nullptr));
  EXPECT_EQ(list[1], request) << "a request stays with its owner";
}

TEST(SecondCaller, IsRefusedWithEveryCall) {
  beside_a_call("", [](torii_context*, torii_team* team, const Held& held) {
    expect_calls_refused(team);
    if (held.is_running) return expect_waits_refused(held.request);
    torii_request* request = held.request;
    expect_second(torii_restart(request));
    expect_second(torii_request_free(&request));
    EXPECT_EQ(request, held.request);
  });
}

/// What any thread may do at any time.
TEST(SecondCaller, MayPushProgressAndAsk) {
  for (const char* settings : {"", "HELPERS=1"}) {
    beside_a_call(settings, [](torii_context* context, torii_team* team, const Held&) {
      for (int i = 0; i < 100; ++i) EXPECT_EQ(torii_progress(context, nullptr), TORII_OK) << last_error();
      EXPECT_EQ(torii_team_health(team), TORII_OK) << last_error();
      EXPECT_EQ(torii_team_lost(team, nullptr, 0), 0);
      EXPECT_EQ(torii_team_rank(team), 0);
      void* memory = nullptr;
      EXPECT_EQ(torii_allocate(context, 64, &memory), TORII_OK) << last_error();
      EXPECT_EQ(torii_free(context, memory), TORII_OK) << last_error();
    });
  }
}

/// Rank 0 is in `first`, in which it waits for rank 1, while `second` runs on another thread of rank 0.
void beside(const std::function<void(torii_team*)>& first, const std::function<void(torii_team*)>& second) {
  std::atomic<bool> is_over = false;
  ThreadTeam options = team_of(2);
  options.idle = say_inside;
  run_as_threads(options, [&](torii_context*, torii_team* team) {
    std::atomic<bool> is_waiting = false;
    std::thread other;
    if (torii_team_rank(team) == 0) {
      is_inside = &is_waiting;
      other = std::thread([&] {
        while (!is_waiting) std::this_thread::sleep_for(1ms);
        second(team);
        is_over = true;
      });
    } else {
      while (!is_over) std::this_thread::sleep_for(1ms);
    }
    first(team);
    if (other.joinable()) other.join();
    is_inside = nullptr;
    EXPECT_EQ(torii_barrier(team), TORII_OK) << last_error();
  });
}

/// Redistributions pack into memory of the team.
TEST(SecondCaller, LeavesTheMemoryOfARedistributionAlone) {
  constexpr std::size_t kSide = 512;
  constexpr std::size_t kItems = kSide * kSide / 2;
  const auto item = [](std::size_t row, std::size_t column) { return static_cast<std::int64_t>(row * kSide + column); };
  const auto transpose = [=](torii_team* team) {
    const std::size_t rank = static_cast<std::size_t>(torii_team_rank(team));
    std::vector<std::int64_t> input(kItems);
    std::vector<std::int64_t> result(kItems, -1);
    for (std::size_t i = 0; i < kItems; ++i) input[i] = item(rank * kSide / 2 + i / kSide, i % kSide);
    EXPECT_EQ(torii_transpose(team, input.data(), result.data(), kSide, kSide, sizeof(std::int64_t)), TORII_OK)
        << last_error();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < kItems; ++i) wrong += result[i] != item(i % kSide, rank * kSide / 2 + i / kSide);
    EXPECT_EQ(wrong, 0U);
  };
  const auto permute = [](torii_team* team) {
    const bool is_first = torii_team_rank(team) == 0;
    std::vector<std::uint64_t> input(kItems, is_first ? 1 : 2);
    std::vector<std::uint64_t> destinations(kItems);
    std::vector<std::uint64_t> result(kItems);
    for (std::size_t i = 0; i < kItems; ++i) destinations[i] = i + (is_first ? kItems : 0);
    EXPECT_EQ(torii_permute(team, input.data(), kItems, destinations.data(), result.data(), kItems, 8), TORII_OK)
        << last_error();
    EXPECT_EQ(result, std::vector<std::uint64_t>(kItems, is_first ? 2 : 1));
  };
  const auto others = [](torii_team* team) {
    std::vector<std::int64_t> input(kItems, 7);
    std::vector<std::int64_t> result(kItems);
    std::vector<std::uint64_t> destinations(kItems);
    for (std::size_t i = 0; i < kItems; ++i) destinations[i] = i;
    expect_second(torii_transpose(team, input.data(), result.data(), kSide, kSide, sizeof(std::int64_t)));
    expect_second(torii_permute(team, input.data(), kItems, destinations.data(), result.data(), kItems, 8));
  };
  beside(transpose, others);
  beside(permute, others);
}

TEST(SecondCaller, DestroysNoLeaves) {
  beside(
      [](torii_team* team) {
        torii_leaves* leaves = nullptr;
        const std::size_t rank = static_cast<std::size_t>(torii_team_rank(team));
        ASSERT_EQ(torii_leaves_create(team, 2, rank, 1, &leaves), TORII_OK) << last_error();
        const std::int64_t one = 1;
        std::int64_t sum = 0;
        EXPECT_EQ(torii_allreduce_leaves(leaves, &one, 1, &sum, 1, TORII_I64, TORII_SUM), TORII_OK) << last_error();
        EXPECT_EQ(sum, 2);
        EXPECT_EQ(torii_leaves_destroy(leaves), TORII_OK);
      },
      [](torii_team* team) { expect_second(torii_team_destroy(team)); });
}

/// A group is one call: it is refused as a whole, or no other thread's call comes between its calls.
TEST(SecondCaller, CutsNoGroup) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "threads that take over without a lock of their own break the rules, as the sanitizer says";
#endif
  run_as_threads(team_of(1), [](torii_context*, torii_team* team) {
    constexpr std::size_t kCalls = 6;
    constexpr std::int64_t kUntouched = -1;
    std::atomic<bool> is_over = false;
    std::thread other([&] {
      const std::int64_t one = 1;
      std::int64_t sum = 0;
      while (!is_over) (void)torii_allreduce(team, &one, &sum, 1, TORII_I64, TORII_SUM);
    });
    int made = 0;
    for (int round = 0; round < 5000 && !::testing::Test::HasFailure(); ++round) {
      const std::int64_t value = round;
      std::int64_t sums[kCalls];
      std::fill(sums, sums + kCalls, kUntouched);
      ASSERT_EQ(torii_group_begin(team), TORII_OK) << last_error();
      for (std::size_t i = 0; i < kCalls; ++i) {
        // Neighbours that differ do not run as one.
        const torii_op op = i % 2 == 0 ? TORII_SUM : TORII_MAX;
        ASSERT_EQ(torii_allreduce(team, &value, &sums[i], 1, TORII_I64, op), TORII_OK) << last_error();
      }
      const torii_status status = torii_group_end(team);
      made += status == TORII_OK ? 1 : 0;
      for (const std::int64_t sum : sums) EXPECT_EQ(sum, status == TORII_OK ? value : kUntouched);
    }
    is_over = true;
    other.join();
    RecordProperty("made", made);
  });
}

/// Two threads that make one call after the other: those that are not refused give the right result. A job of one rank,
/// so that no other rank sees which calls were refused.
TEST(SecondCaller, MayComeAtAnyTime) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "threads that take over without a lock of their own break the rules, as the sanitizer says";
#endif
  run_as_threads(team_of(1), [](torii_context*, torii_team* team) {
    std::atomic<int> refused = 0;
    const auto hammer = [&](std::int64_t first) {
      for (std::int64_t value = first; value < first + 50'000; ++value) {
        std::int64_t sum = 0;
        const torii_status status = torii_allreduce(team, &value, &sum, 1, TORII_I64, TORII_SUM);
        if (status == TORII_OK) {
          ASSERT_EQ(sum, value);
        } else {
          ASSERT_EQ(status, TORII_INVALID_ARGUMENT) << last_error();
          ++refused;
        }
      }
    };
    std::thread one(hammer, 0);
    std::thread other(hammer, 1'000'000);
    one.join();
    other.join();
    RecordProperty("refused", refused.load());
    std::int64_t sum = 0;
    const std::int64_t value = 7;
    EXPECT_EQ(torii_allreduce(team, &value, &sum, 1, TORII_I64, TORII_SUM), TORII_OK) << last_error();
  });
}

/// Threads that take turns, which is allowed.
TEST(SecondCaller, MayComeWhenTheFirstHasLeft) {
  run_as_threads(team_of(2, "HELPERS=1"), [](torii_context*, torii_team* team) {
    for (int turn = 0; turn < 20; ++turn) {
      std::thread([&] {
        Operation one(100, torii_team_rank(team), turn);
        const torii_call call = one.call();
        std::int64_t value = 1;
        EXPECT_EQ(torii_start(team, &call, &one.request), TORII_OK) << last_error();
        EXPECT_EQ(torii_allreduce(team, &value, &value, 1, TORII_I64, TORII_SUM), TORII_OK) << last_error();
        EXPECT_EQ(torii_wait(&one.request), TORII_OK) << last_error();
        EXPECT_TRUE(one.is_right(2, turn));
      }).join();
    }
  });
}

}  // namespace
}  // namespace torii::tests
