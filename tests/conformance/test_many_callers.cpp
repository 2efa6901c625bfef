// SPDX-License-Identifier: Apache-2.0
// Several threads of a rank that use one team at once, or each a team of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/many_callers.hpp"
#include "tests/conformance/numbered_operation.hpp"
#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

using namespace std::chrono_literals;

// The field must not lie where older programs have padding, which they need not set.
static_assert(offsetof(torii_team_options, many_callers) >= offsetof(torii_team_options, channels) + 8);

/// Requests on their way from the thread that starts them to the one that waits for them.
class Queue {
 public:
  void push(Operation* one) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(one);
    came_.notify_one();
  }
  Operation* pop() {
    std::unique_lock lock(mutex_);
    came_.wait(lock, [this] { return !waiting_.empty(); });
    Operation* const one = waiting_.front();
    waiting_.pop_front();
    return one;
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<Operation*> waiting_;
};

/// One thread starts the next operations while another one waits for those before, and a third one pushes progress.
void start_and_wait_at_once(const ThreadTeam& options) {
  run_shared(options, [&](torii_context* context, torii_team* team) {
    const int rank = torii_team_rank(team);
    constexpr int kCount = 60;
    std::vector<Operation> operations;
    for (int number = 0; number < kCount; ++number) operations.emplace_back(100 + 5'000 * (number % 3), rank, number);
    Queue queue;
    std::atomic<bool> is_over = false;
    std::thread pusher([&] {
      while (!is_over) EXPECT_EQ(torii_progress(context, nullptr), TORII_OK);
    });
    std::thread waiter([&] {
      for (int number = 0; number < kCount; ++number) {
        EXPECT_EQ(torii_wait(&queue.pop()->request), TORII_OK) << last_error();
      }
    });
    for (Operation& one : operations) {
      start(team, one);
      queue.push(&one);
      // A blocking call goes between them.
      std::int64_t own = 1;
      EXPECT_EQ(torii_allreduce(team, &own, &own, 1, TORII_I64, TORII_SUM), TORII_OK) << last_error();
      EXPECT_EQ(own, 3);
    }
    waiter.join();
    is_over = true;
    pusher.join();
    for (int number = 0; number < kCount; ++number) {
      EXPECT_TRUE(operations[static_cast<std::size_t>(number)].is_right(3, number)) << number;
    }
  });
}

TEST(ManyCallers, StartAndWaitAtOnce) {
  for (const std::vector<int>& nodes : kPlaces) {
    ThreadTeam options = team_of(3);
    options.nodes = nodes;
    start_and_wait_at_once(options);
  }
}

TEST(ManyCallers, StartAndWaitBesideProgressThreads) { start_and_wait_at_once(team_of(3, "HELPERS=2")); }

/// A thread that waits does not keep the others out. Rank 1 makes its calls only when rank 0 has made both of its own.
TEST(ManyCallers, AWaiterLetsTheNextCallIn) {
  std::atomic<bool> has_made_both = false;
  run_shared(team_of(2), [&](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    Operation first(100, rank, 0);
    Operation second(5100, rank, 1);
    if (rank == 1) wait_until(has_made_both);
    start(team, first);
    std::thread waiter([&] { EXPECT_EQ(torii_wait(&first.request), TORII_OK) << last_error(); });
    std::this_thread::sleep_for(rank == 0 ? 30ms : 0ms);
    start(team, second);
    if (rank == 0) has_made_both = true;
    waiter.join();
    EXPECT_EQ(torii_wait(&second.request), TORII_OK) << last_error();
    EXPECT_TRUE(first.is_right(2, 0) && second.is_right(2, 1));
  });
}

/// Several threads repeat one and the same call, so that their order does not matter.
TEST(ManyCallers, RepeatACall) {
  run_shared(team_of(2), [&](torii_context*, torii_team* team) {
    std::vector<std::thread> callers;
    for (int i = 0; i < 3; ++i) {
      callers.emplace_back([team] {
        for (int call = 0; call < 300; ++call) {
          std::int64_t one = 1;
          ASSERT_EQ(torii_allreduce(team, &one, &one, 1, TORII_I64, TORII_SUM), TORII_OK) << last_error();
          ASSERT_EQ(one, 2);
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
  });
}

/// All threads that wait, in a blocking call or for a request, learn why the team has failed.
TEST(ManyCallers, LearnOfAnAbort) {
  std::atomic<int> waiting = 0;
  run_shared(team_of(2), [&](torii_context*, torii_team* team) {
    if (torii_team_rank(team) == 1) {
      while (waiting < 4) std::this_thread::yield();
      std::this_thread::sleep_for(20ms);
      EXPECT_EQ(torii_team_abort(team, "enough"), TORII_OK);
      return;
    }
    std::vector<Operation> operations;
    for (int number = 0; number < 3; ++number) operations.emplace_back(100, 0, number);
    for (Operation& one : operations) start(team, one);
    std::vector<std::thread> callers;
    const auto expect_aborted = [&](torii_status status) {
      EXPECT_EQ(status, TORII_ABORTED);
      EXPECT_NE(last_error().find("enough"), std::string::npos) << last_error();
    };
    for (int i = 0; i < 3; ++i) {
      callers.emplace_back([&, i] {
        ++waiting;
        expect_aborted(torii_wait(&operations[static_cast<std::size_t>(i)].request));
      });
    }
    callers.emplace_back([&] {
      ++waiting;
      expect_aborted(torii_barrier(team));
    });
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(torii_barrier(team), TORII_POISONED);
  });
}

/// A wait has no deadline while the team moves, even if other threads move it in calls that need no wait. Rank 1 puts
/// its part of the broadcasts before rank 0 comes to them, and restarts its persistent operation long after rank 0.
void wait_while_others_move(const std::function<torii_status(torii_request**)>& wait) {
  std::atomic<int> put = 0;
  std::atomic<int> taken = 0;
  run_shared(team_of(2, "TIMEOUT=0.4"), [&](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    Operation late(100, rank, 1);
    const torii_call call = late.call();
    ASSERT_EQ(torii_prepare(team, &call, &late.request), TORII_OK) << last_error();
    // The first broadcast on either channel does wait.
    for (std::int64_t value : {1, 2}) ASSERT_EQ(torii_broadcast(team, &value, 1, TORII_I64, 1), TORII_OK);
    std::thread waiter;
    if (rank == 0) {
      ASSERT_EQ(torii_restart(late.request), TORII_OK) << last_error();
      waiter = std::thread([&] { EXPECT_EQ(wait(&late.request), TORII_OK) << last_error(); });
    }
    for (int call_number = 1; call_number <= 100; ++call_number) {
      std::int64_t value = call_number;
      while (rank == 0 ? put < call_number : taken < call_number - 1) std::this_thread::sleep_for(1ms);
      if (rank == 1) std::this_thread::sleep_for(9ms);
      EXPECT_EQ(torii_broadcast(team, &value, 1, TORII_I64, 1), TORII_OK) << last_error();
      ++(rank == 0 ? taken : put);
    }
    if (rank == 1) {
      ASSERT_EQ(torii_restart(late.request), TORII_OK) << last_error();
      EXPECT_EQ(torii_wait(&late.request), TORII_OK) << last_error();
    } else {
      waiter.join();
    }
    EXPECT_TRUE(late.is_right(2, 1));
    EXPECT_EQ(torii_request_free(&late.request), TORII_OK) << last_error();
  });
}

TEST(ManyCallers, AWaitSeesWhatOthersMove) { wait_while_others_move(torii_wait); }
TEST(ManyCallers, ATestSeesWhatOthersMove) {
  wait_while_others_move([](torii_request** request) {
    int done = 0;
    torii_status status = TORII_OK;
    while (done == 0) {
      status = torii_test(request, &done);
      std::this_thread::sleep_for(1ms);
    }
    return status;
  });
}
TEST(ManyCallers, MomentsOfWaitingSeeWhatOthersMove) {
  wait_while_others_move([](torii_request** request) {
    int done = 0;
    torii_status status = TORII_OK;
    while (done == 0) status = torii_wait_for(request, 0.01, &done);
    return status;
  });
}

/// What the calling thread does when torii calls `idle` in it.
thread_local std::function<void()> when_idle;

void call_when_idle(void*) {
  if (when_idle) when_idle();
}

/// Two threads of each rank wait, each on a team of its own, and test a request of the other's team when they are idle.
/// Ranks start in opposite orders.
TEST(ManyCallers, MayTestTheOtherTeamWhenIdle) {
  ThreadTeam options = team_of(2);
  options.idle = call_when_idle;
  run_as_threads(options, [](torii_context*, torii_team* parent) {
    torii_team* const teams[2] = {shared_part(parent), shared_part(parent)};
    const int rank = torii_team_rank(parent);
    for (int round = 0; round < 20; ++round) {
      std::vector<Operation> tested;
      std::vector<Operation> awaited;
      for (int i = 0; i < 2; ++i) {
        tested.emplace_back(20'000, rank, round);
        awaited.emplace_back(20'000, rank, round + 1);
      }
      const auto use = [&](std::size_t own) {
        const std::size_t other = 1 - own;
        int done = 0;
        when_idle = [&] {
          if (done != 0) return;
          EXPECT_EQ(torii_test(&tested[other].request, &done), TORII_OK) << last_error();
        };
        start(teams[own], awaited[own]);
        EXPECT_EQ(torii_wait(&awaited[own].request), TORII_OK) << last_error();
        when_idle = nullptr;
        while (done == 0) EXPECT_EQ(torii_test(&tested[other].request, &done), TORII_OK) << last_error();
      };
      for (std::size_t i = 0; i < 2; ++i) start(teams[i], tested[i]);
      std::thread first(use, static_cast<std::size_t>(rank));
      std::thread second(use, static_cast<std::size_t>(1 - rank));
      first.join();
      second.join();
      for (const Operation& one : tested) EXPECT_TRUE(one.is_right(2, round));
      for (const Operation& one : awaited) EXPECT_TRUE(one.is_right(2, round + 1));
    }
    for (torii_team* team : teams) EXPECT_EQ(torii_team_destroy(team), TORII_OK) << last_error();
  });
}

/// How often progress threads of this process have slept.
long naps() {
  long sum = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    bool is_helper = false;
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("Name:")) is_helper = line.find("torii-helper") != std::string::npos;
      if (is_helper && line.starts_with("voluntary_ctxt_switches:")) sum += std::stol(line.substr(line.find(':') + 1));
    }
  }
  return sum;
}

/// Progress threads sleep when a blocking call was the last one to end, too.
TEST(ManyCallers, LeaveNothingToProgressThreads) {
  std::atomic<bool> is_blocking = false;
  std::atomic<bool> has_waited = false;
  std::atomic<bool> is_over = false;
  run_shared(team_of(2, "HELPERS=1"), [&](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    Operation one(100, rank, 1);
    start(team, one);
    if (rank == 0) {
      std::thread blocking([&] {
        is_blocking = true;
        EXPECT_EQ(torii_barrier(team), TORII_OK) << last_error();
      });
      wait_until(is_blocking);
      std::this_thread::sleep_for(20ms);
      EXPECT_EQ(torii_wait(&one.request), TORII_OK) << last_error();
      has_waited = true;
      blocking.join();
      std::this_thread::sleep_for(100ms);
      const long before = naps();
      std::this_thread::sleep_for(100ms);
      EXPECT_EQ(naps(), before);
      is_over = true;
    } else {
      EXPECT_EQ(torii_wait(&one.request), TORII_OK) << last_error();
      wait_until(has_waited);
      EXPECT_EQ(torii_barrier(team), TORII_OK) << last_error();
      wait_until(is_over);
    }
  });
}

}  // namespace
}  // namespace torii::tests
