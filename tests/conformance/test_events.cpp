// SPDX-License-Identifier: Apache-2.0
// How programs with an event loop learn that operations have ended: functions that are called, and a descriptor.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/numbered_operation.hpp"
#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

using namespace std::chrono_literals;

bool is_readable(int descriptor, int wait_ms) {
  pollfd entry = {descriptor, POLLIN, 0};
  return poll(&entry, 1, wait_ms) == 1;
}

/// Reads the descriptor, so that it is readable when the next operation ends.
void take_event(int descriptor) {
  std::uint64_t ends = 0;
  ASSERT_EQ(read(descriptor, &ends, sizeof(ends)), static_cast<ssize_t>(sizeof(ends)));
  EXPECT_GT(ends, 0U);
}

torii_request* started(torii_team* team, Operation& one) {
  const torii_call call = one.call();
  torii_request* request = nullptr;
  EXPECT_EQ(torii_start(team, &call, &request), TORII_OK) << last_error();
  return request;
}

/// An event loop that does nothing but poll: progress threads move the operations.
TEST(Events, WakeALoopBesideProgressThreads) {
  for (const std::vector<int>& nodes : kPlaces) {
    ThreadTeam options = team_of(3, "HELPERS=1");
    options.nodes = nodes;
    run_as_threads(options, [](torii_context* context, torii_team* team) {
      const int descriptor = torii_context_event_fd(context);
      ASSERT_GE(descriptor, 0) << last_error();
      EXPECT_EQ(torii_context_event_fd(context), descriptor);
      EXPECT_FALSE(is_readable(descriptor, 0));
      constexpr int kCount = 8;
      std::vector<Operation> operations;
      for (int number = 0; number < kCount; ++number) operations.emplace_back(20'000, torii_team_rank(team), number);
      std::vector<torii_request*> requests;
      for (Operation& one : operations) requests.push_back(started(team, one));
      int ended = 0;
      while (ended < kCount) {
        ASSERT_TRUE(is_readable(descriptor, 10'000)) << "nobody has rung";
        take_event(descriptor);
        int index = 0;
        while (index >= 0) {
          ASSERT_EQ(torii_test_any(requests.data(), kCount, &index), TORII_OK) << last_error();
          if (index >= 0) ++ended;
        }
      }
      for (int number = 0; number < kCount; ++number) {
        EXPECT_TRUE(operations[static_cast<std::size_t>(number)].is_right(3, number)) << number;
      }
    });
  }
}

/// Without progress threads the loop moves the operations itself.
TEST(Events, TellWhatProgressHasEnded) {
  run_as_threads(team_of(2), [](torii_context* context, torii_team* team) {
    const int descriptor = torii_context_event_fd(context);
    ASSERT_GE(descriptor, 0) << last_error();
    Operation one(20'000, torii_team_rank(team), 1);
    torii_request* request = started(team, one);
    while (!is_readable(descriptor, 0)) ASSERT_EQ(torii_progress(context, nullptr), TORII_OK) << last_error();
    int done = 0;
    EXPECT_EQ(torii_test(&request, &done), TORII_OK) << last_error();
    EXPECT_EQ(done, 1);
    EXPECT_TRUE(one.is_right(2, 1));
    take_event(descriptor);
    EXPECT_FALSE(is_readable(descriptor, 0));
    // A call that blocks is no event, and one without elements is.
    EXPECT_EQ(torii_barrier(team), TORII_OK) << last_error();
    EXPECT_FALSE(is_readable(descriptor, 0));
    Operation nothing(0, torii_team_rank(team), 1);
    request = started(team, nothing);
    EXPECT_TRUE(is_readable(descriptor, 0));
    EXPECT_EQ(torii_wait(&request), TORII_OK) << last_error();
  });
}

struct Heard {
  std::atomic<int> calls = 0;
  std::atomic<int> status = -1;
  static void hear(torii_status status, void* data) {
    Heard& heard = *static_cast<Heard*>(data);
    heard.status = status;
    ++heard.calls;
  }
};

void functions_hear_of_ends(const std::string& settings) {
  run_as_threads(team_of(2, settings), [](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    // Two operations on one channel: the second is queued.
    std::vector<Operation> operations;
    for (int number = 0; number < 4; ++number) operations.emplace_back(20'000, rank, number);
    Heard heard[4];
    std::vector<torii_request*> requests;
    for (Operation& one : operations) requests.push_back(started(team, one));
    for (std::size_t i = 0; i < 4; ++i) {
      ASSERT_EQ(torii_request_on_done(requests[i], Heard::hear, &heard[i]), TORII_OK) << last_error();
    }
    EXPECT_EQ(torii_wait_all(requests.data(), 4), TORII_OK) << last_error();
    for (const Heard& one : heard) EXPECT_TRUE(one.calls == 1 && one.status == TORII_OK);

    // A persistent request tells one end for each time that it is asked to.
    const torii_call call = operations[0].call();
    torii_request* often = nullptr;
    ASSERT_EQ(torii_prepare(team, &call, &often), TORII_OK) << last_error();
    EXPECT_EQ(torii_request_on_done(often, Heard::hear, &heard[0]), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(last_error(), "the request is not running: start it first");
    Heard last;
    for (int round = 0; round < 3; ++round) {
      ASSERT_EQ(torii_restart(often), TORII_OK) << last_error();
      if (round == 1) {
        EXPECT_EQ(torii_barrier(team), TORII_OK) << last_error();
        EXPECT_EQ(torii_request_on_done(often, Heard::hear, &last), TORII_OK) << last_error();
      }
      EXPECT_EQ(torii_wait(&often), TORII_OK) << last_error();
      EXPECT_EQ(last.calls, round == 0 ? 0 : 1);
    }
    EXPECT_EQ(torii_request_free(&often), TORII_OK) << last_error();

    // One that has ended already is told at once.
    Operation nothing(0, rank, 1);
    torii_request* ended = started(team, nothing);
    Heard at_once;
    EXPECT_EQ(torii_request_on_done(ended, Heard::hear, &at_once), TORII_OK) << last_error();
    EXPECT_TRUE(at_once.calls == 1 && at_once.status == TORII_OK);
    EXPECT_EQ(torii_wait(&ended), TORII_OK) << last_error();
    EXPECT_EQ(at_once.calls, 1);
  });
}

TEST(Events, FunctionsHearOfEnds) { functions_hear_of_ends(""); }
TEST(Events, FunctionsHearOfEndsBesideProgressThreads) { functions_hear_of_ends("HELPERS=2"); }

/// Requests that end with the team, running or queued, are ends too.
TEST(Events, FunctionsHearOfFailures) {
  std::atomic<bool> has_started = false;
  run_as_threads(team_of(2), [&](torii_context* context, torii_team* team) {
    if (torii_team_rank(team) == 1) {
      while (!has_started) std::this_thread::sleep_for(1ms);
      EXPECT_EQ(torii_team_abort(team, "enough"), TORII_OK);
      return;
    }
    const int descriptor = torii_context_event_fd(context);
    ASSERT_GE(descriptor, 0) << last_error();
    std::vector<Operation> operations;
    for (int number = 0; number < 5; ++number) operations.emplace_back(100, 0, number);
    Heard replaced;
    Heard heard[5];
    std::vector<torii_request*> requests;
    for (std::size_t i = 0; i < 5; ++i) {
      requests.push_back(started(team, operations[i]));
      ASSERT_EQ(torii_request_on_done(requests[i], Heard::hear, &replaced), TORII_OK) << last_error();
      ASSERT_EQ(torii_request_on_done(requests[i], Heard::hear, &heard[i]), TORII_OK) << last_error();
    }
    has_started = true;
    int index = 0;
    EXPECT_EQ(torii_wait_any(requests.data(), 5, &index), TORII_ABORTED);
    EXPECT_TRUE(is_readable(descriptor, 0));
    for (const Heard& one : heard) EXPECT_TRUE(one.calls == 1 && one.status == TORII_ABORTED);
    EXPECT_EQ(replaced.calls, 0);
    EXPECT_EQ(torii_wait_all(requests.data(), 5), TORII_ABORTED);
  });
}

TEST(Events, SayWhatIsWrong) {
  EXPECT_EQ(torii_context_event_fd(nullptr), -1);
  EXPECT_EQ(last_error(), "context is NULL");
  EXPECT_EQ(torii_request_on_done(nullptr, Heard::hear, nullptr), TORII_INVALID_ARGUMENT);
  EXPECT_EQ(last_error(), "request or the function is NULL");
  run_as_threads(team_of(1), [](torii_context* context, torii_team* team) {
    Operation one(100, 0, 1);
    torii_request* request = started(team, one);
    EXPECT_EQ(torii_request_on_done(request, nullptr, nullptr), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(torii_wait(&request), TORII_OK) << last_error();
    rlimit before = {};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit none = {0, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    EXPECT_EQ(torii_context_event_fd(context), -1);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_NE(last_error().find("cannot make a descriptor for events: "), std::string::npos) << last_error();
    EXPECT_GE(torii_context_event_fd(context), 0) << "it is made when there is room";
  });
}

}  // namespace
}  // namespace torii::tests
