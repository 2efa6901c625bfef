// SPDX-License-Identifier: Apache-2.0
// Waits with an end of their own, lists of requests, and several threads of a rank that use one team.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/numbered_operation.hpp"
#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

std::string last_error() { return torii_last_error(); }

std::vector<torii_request*> start_all(torii_team* team, std::vector<Operation>& operations) {
  std::vector<torii_request*> requests;
  for (Operation& one : operations) {
    const torii_call call = one.call();
    EXPECT_EQ(torii_start(team, &call, &one.request), TORII_OK) << last_error();
    requests.push_back(one.request);
  }
  return requests;
}

std::vector<Operation> operations_of(int rank, int count) {
  std::vector<Operation> operations;
  for (int number = 0; number < count; ++number) operations.emplace_back(100 + 5'000 * (number % 3), rank, number);
  return operations;
}

TEST(Progress, AWaitThatEndsEarlySaysForWhomItWaits) {
  for (const std::vector<int>& nodes : {std::vector<int>{}, std::vector<int>{0, 1, 1}}) {
    ThreadTeam options = team_of(3);
    options.nodes = nodes;
    std::atomic<int> impatient = 0;
    run_as_threads(options, [&](torii_context*, torii_team* team) {
      ASSERT_EQ(torii_barrier(team), TORII_OK) << last_error();
      if (torii_team_rank(team) == 2) {
        while (impatient < 2) std::this_thread::yield();
      }
      torii_call call = make_call(TORII_BARRIER, nullptr, nullptr, 0, TORII_I8);
      torii_request* request = nullptr;
      ASSERT_EQ(torii_start(team, &call, &request), TORII_OK) << last_error();
      int done = 1;
      if (torii_team_rank(team) != 2) {
        EXPECT_EQ(torii_wait_for(&request, 0.02, &done), TORII_OK);
        EXPECT_EQ(done, 0);
        EXPECT_NE(request, nullptr);
        EXPECT_NE(last_error().find("not yet done: "), std::string::npos) << last_error();
        EXPECT_NE(last_error().find("waiting for "), std::string::npos) << last_error();
        EXPECT_EQ(torii_wait_for(&request, 0, &done), TORII_OK);
        EXPECT_EQ(done, 0);
        ++impatient;
      }
      EXPECT_EQ(torii_wait_for(&request, 1e300, &done), TORII_OK) << last_error();
      EXPECT_EQ(done, 1);
      EXPECT_EQ(request, nullptr);
    });
  }
}

TEST(Progress, ListsOfRequests) {
  run_as_threads(team_of(3), [](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    constexpr int kCount = 9;
    const auto are_right = [&](const std::vector<Operation>& operations) {
      for (int number = 0; number < kCount; ++number) {
        EXPECT_TRUE(operations[static_cast<std::size_t>(number)].is_right(3, number)) << number;
      }
    };
    {
      std::vector<Operation> operations = operations_of(rank, kCount);
      std::vector<torii_request*> requests = start_all(team, operations);
      EXPECT_EQ(torii_wait_all(requests.data(), kCount), TORII_OK) << last_error();
      EXPECT_EQ(std::count(requests.begin(), requests.end(), nullptr), kCount);
      are_right(operations);
    }
    {
      std::vector<Operation> operations = operations_of(rank, kCount);
      std::vector<torii_request*> requests = start_all(team, operations);
      std::vector<int> seen(kCount);
      for (int round = 0; round < kCount; ++round) {
        int index = -1;
        ASSERT_EQ(torii_wait_any(requests.data(), kCount, &index), TORII_OK) << last_error();
        ASSERT_GE(index, 0);
        EXPECT_EQ(requests[static_cast<std::size_t>(index)], nullptr);
        ++seen[static_cast<std::size_t>(index)];
      }
      EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), kCount);
      int index = 0;
      EXPECT_EQ(torii_wait_any(requests.data(), kCount, &index), TORII_OK);
      EXPECT_EQ(index, -1);
      are_right(operations);
    }
    {
      std::vector<Operation> operations = operations_of(rank, kCount);
      std::vector<torii_request*> requests = start_all(team, operations);
      int ended = 0;
      while (ended < kCount) {
        std::vector<int> indices(kCount, -1);
        std::vector<torii_status> statuses(kCount, TORII_INTERNAL);
        int done = 0;
        ASSERT_EQ(torii_wait_some(requests.data(), kCount, indices.data(), statuses.data(), &done), TORII_OK);
        ASSERT_GT(done, 0);
        EXPECT_TRUE(std::is_sorted(indices.begin(), indices.begin() + done));
        EXPECT_EQ(std::count(statuses.begin(), statuses.begin() + done, TORII_OK), done);
        ended += done;
      }
      are_right(operations);
    }
  });
}

TEST(Progress, ListsOfRequestsThatAreTested) {
  run_as_threads(team_of(3), [](torii_context*, torii_team* team) {
    constexpr int kCount = 9;
    std::vector<Operation> operations = operations_of(torii_team_rank(team), kCount);
    std::vector<torii_request*> requests = start_all(team, operations);
    int index = -1;
    while (index < 0) ASSERT_EQ(torii_test_any(requests.data(), kCount, &index), TORII_OK) << last_error();
    int done = 0;
    while (done == 0) ASSERT_EQ(torii_test_all(requests.data(), kCount, &done), TORII_OK) << last_error();
    EXPECT_EQ(std::count(requests.begin(), requests.end(), nullptr), kCount);
    for (int number = 0; number < kCount; ++number) {
      EXPECT_TRUE(operations[static_cast<std::size_t>(number)].is_right(3, number)) << number;
    }
  });
}

/// The status of a list is that of its first request that failed, and all of them are gone.
TEST(Progress, ListsTellTheFailure) {
  std::atomic<bool> have_started = false;
  run_as_threads(team_of(2), [&](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    std::vector<Operation> operations = operations_of(rank, rank == 0 ? 4 : 0);
    std::vector<torii_request*> requests = start_all(team, operations);
    const int count = static_cast<int>(requests.size());
    if (rank == 0) have_started = true;
    if (rank == 1) {
      while (!have_started) std::this_thread::yield();
      EXPECT_EQ(torii_team_abort(team, "enough"), TORII_OK);
      return;
    }
    int index = 7;
    EXPECT_EQ(torii_wait_any(requests.data(), count, &index), TORII_ABORTED);
    EXPECT_GE(index, 0);
    EXPECT_EQ(torii_wait_all(requests.data(), count), TORII_ABORTED);
    EXPECT_NE(last_error().find("enough"), std::string::npos) << last_error();
    EXPECT_EQ(std::count(requests.begin(), requests.end(), nullptr), count);
  });
}

TEST(Progress, RefusesWhatIsNoList) {
  torii_request* none[2] = {nullptr, nullptr};
  int answer = 0;
  EXPECT_EQ(torii_wait_all(nullptr, 2), TORII_INVALID_ARGUMENT);
  EXPECT_EQ(last_error(), "requests is NULL of 2; give a list and its length");
  EXPECT_EQ(torii_test_all(none, -1, &answer), TORII_INVALID_ARGUMENT);
  EXPECT_EQ(torii_wait_any(none, 2, nullptr), TORII_INVALID_ARGUMENT);
  EXPECT_EQ(torii_test_any(none, 2, nullptr), TORII_INVALID_ARGUMENT);
  EXPECT_EQ(torii_wait_some(none, 2, nullptr, nullptr, &answer), TORII_INVALID_ARGUMENT);
  EXPECT_EQ(torii_wait_for(none, -1, &answer), TORII_INVALID_ARGUMENT);
  EXPECT_EQ(last_error(), "seconds is -1.000000; it must be 0 or more");
  EXPECT_EQ(torii_wait(nullptr), TORII_INVALID_ARGUMENT);
  EXPECT_EQ(torii_test(none, nullptr), TORII_INVALID_ARGUMENT);
  EXPECT_EQ(torii_progress(nullptr, nullptr), TORII_INVALID_ARGUMENT);
  // Nothing to wait for.
  EXPECT_EQ(torii_wait_all(nullptr, 0), TORII_OK);
  EXPECT_EQ(torii_wait_all(none, 2), TORII_OK);
  EXPECT_EQ(torii_wait(none), TORII_OK);
  EXPECT_EQ(torii_request_free(none), TORII_OK);
  EXPECT_EQ(torii_request_free(nullptr), TORII_OK);
  EXPECT_EQ(torii_test(none, &answer), TORII_OK);
  EXPECT_EQ(answer, 1);
}

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
TEST(Progress, ManyCallersStartAndWaitAtOnce) {
  for (const std::vector<int>& nodes : {std::vector<int>{}, std::vector<int>{0, 1, 1}}) {
    ThreadTeam options = team_of(3);
    options.nodes = nodes;
    run_as_threads(options, [&](torii_context* context, torii_team* parent) {
      torii_team_options with = {};
      with.size = sizeof(with);
      with.many_callers = 1;
      torii_team* team = nullptr;
      ASSERT_EQ(torii_team_split(parent, 0, 0, &with, &team), TORII_OK) << last_error();
      const int rank = torii_team_rank(team);
      constexpr int kCount = 60;
      std::vector<Operation> operations = operations_of(rank, kCount);
      Queue queue;
      std::atomic<bool> is_over = false;
      std::thread pusher([&] {
        while (!is_over) EXPECT_EQ(torii_progress(context, nullptr), TORII_OK);
      });
      std::thread waiter([&] {
        for (int number = 0; number < kCount; ++number) {
          Operation* const one = queue.pop();
          EXPECT_EQ(torii_wait(&one->request), TORII_OK) << last_error();
        }
      });
      for (Operation& one : operations) {
        const torii_call call = one.call();
        EXPECT_EQ(torii_start(team, &call, &one.request), TORII_OK) << last_error();
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
      EXPECT_EQ(torii_team_destroy(team), TORII_OK) << last_error();
    });
  }
}

/// A thread that waits does not keep the others out. Rank 1 makes its calls only when rank 0 has made both of its own.
TEST(Progress, AWaiterLetsTheNextCallIn) {
  std::atomic<bool> has_made_both = false;
  run_as_threads(team_of(2), [&](torii_context*, torii_team* parent) {
    torii_team_options with = {};
    with.size = sizeof(with);
    with.many_callers = 1;
    torii_team* team = nullptr;
    ASSERT_EQ(torii_team_split(parent, 0, 0, &with, &team), TORII_OK) << last_error();
    const int rank = torii_team_rank(team);
    std::vector<Operation> operations = operations_of(rank, 2);
    torii_call first = operations[0].call();
    torii_call second = operations[1].call();
    while (rank == 1 && !has_made_both) std::this_thread::yield();
    ASSERT_EQ(torii_start(team, &first, &operations[0].request), TORII_OK) << last_error();
    std::thread waiter([&] { EXPECT_EQ(torii_wait(&operations[0].request), TORII_OK) << last_error(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(rank == 0 ? 30 : 0));
    ASSERT_EQ(torii_start(team, &second, &operations[1].request), TORII_OK) << last_error();
    if (rank == 0) has_made_both = true;
    waiter.join();
    EXPECT_EQ(torii_wait(&operations[1].request), TORII_OK) << last_error();
    EXPECT_TRUE(operations[0].is_right(2, 0) && operations[1].is_right(2, 1));
    EXPECT_EQ(torii_team_destroy(team), TORII_OK) << last_error();
  });
}

}  // namespace
}  // namespace torii::tests
