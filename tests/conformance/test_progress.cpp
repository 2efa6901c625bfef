// SPDX-License-Identifier: Apache-2.0
// Waits with an end of their own, and lists of requests.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/numbered_operation.hpp"
#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

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
  for (const std::vector<int>& nodes : kPlaces) {
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
  EXPECT_EQ(last_error(), "requests is NULL, but count is 2");
  EXPECT_EQ(torii_test_all(none, -1, &answer), TORII_INVALID_ARGUMENT);
  EXPECT_EQ(last_error(), "count is -1; it must be 0 or more");
  EXPECT_EQ(torii_test_all(none, 2, nullptr), TORII_INVALID_ARGUMENT);
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

/// A caller that waits a moment each time learns of a failure and of the deadline as one that waits once.
TEST(Progress, MomentsOfWaitingAddUp) {
  struct Moments {
    double seconds;
    double least_s, most_s;
  };
  for (const Moments& moments : {Moments{0, 0.9, 6}, Moments{0.001, 0.9, 3}, Moments{0.7, 1, 3}}) {
    std::atomic<bool> is_over = false;
    run_as_threads(team_of(2, "TIMEOUT=1"), [&](torii_context*, torii_team* team) {
      std::int64_t one = 1;
      torii_call call = make_call(TORII_ALLREDUCE, &one, &one, 1, TORII_I64);
      torii_request* request = nullptr;
      if (torii_team_rank(team) == 1) {
        while (!is_over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return;
      }
      const auto begin = std::chrono::steady_clock::now();
      ASSERT_EQ(torii_start(team, &call, &request), TORII_OK) << last_error();
      int done = 0;
      torii_status status = TORII_OK;
      while (done == 0) status = torii_wait_for(&request, moments.seconds, &done);
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
      EXPECT_EQ(status, TORII_TIMEOUT) << last_error();
      EXPECT_NE(last_error().find("not come to the call: rank 1"), std::string::npos) << last_error();
      EXPECT_EQ(request, nullptr);
      EXPECT_GT(waited.count(), moments.least_s) << moments.seconds;
      EXPECT_LT(waited.count(), moments.most_s) << moments.seconds;
      is_over = true;
    });
  }
}

TEST(Progress, MomentsOfWaitingSeeAnAbort) {
  std::atomic<bool> has_started = false;
  run_as_threads(team_of(2), [&](torii_context*, torii_team* team) {
    if (torii_team_rank(team) == 1) {
      while (!has_started) std::this_thread::yield();
      EXPECT_EQ(torii_team_abort(team, "enough"), TORII_OK);
      return;
    }
    std::int64_t one = 1;
    torii_call call = make_call(TORII_ALLREDUCE, &one, &one, 1, TORII_I64);
    torii_request* request = nullptr;
    ASSERT_EQ(torii_start(team, &call, &request), TORII_OK) << last_error();
    has_started = true;
    int done = 0;
    torii_status status = TORII_OK;
    while (done == 0) status = torii_wait_for(&request, 0.0005, &done);
    EXPECT_EQ(status, TORII_ABORTED) << last_error();
    EXPECT_NE(last_error().find("enough"), std::string::npos) << last_error();
  });
}

/// Persistent requests stay in a list when they have ended, and count as ended until they are started again.
TEST(Progress, PersistentRequestsInLists) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    constexpr int kCount = 3;
    const int rank = torii_team_rank(team);
    std::vector<Operation> operations = operations_of(rank, kCount);
    std::vector<torii_request*> requests(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      const torii_call call = operations[i].call();
      ASSERT_EQ(torii_prepare(team, &call, &requests[i]), TORII_OK) << last_error();
    }
    int index = 0;
    EXPECT_EQ(torii_wait_any(requests.data(), kCount, &index), TORII_OK) << last_error();
    EXPECT_EQ(index, -1) << "none has been started";
    for (int round = 0; round < 5; ++round) {
      for (int i = 0; i < kCount; ++i) operations[static_cast<std::size_t>(i)].set(rank, 10 * round + i);
      for (torii_request* one : requests) ASSERT_EQ(torii_restart(one), TORII_OK) << last_error();
      ASSERT_EQ(torii_wait_any(requests.data(), kCount, &index), TORII_OK) << last_error();
      ASSERT_TRUE(index >= 0 && index < kCount);
      int indices[kCount] = {};
      int ended = 0;
      ASSERT_EQ(torii_wait_some(requests.data(), kCount, indices, nullptr, &ended), TORII_OK) << last_error();
      EXPECT_TRUE(ended >= 1 && std::count(indices, indices + ended, index) == 0);
      int done = 0;
      while (done == 0) ASSERT_EQ(torii_test_all(requests.data(), kCount, &done), TORII_OK) << last_error();
      EXPECT_EQ(std::count(requests.begin(), requests.end(), nullptr), 0);
      for (int i = 0; i < kCount; ++i) {
        EXPECT_TRUE(operations[static_cast<std::size_t>(i)].is_right(2, 10 * round + i)) << round << ' ' << i;
      }
    }
    for (torii_request*& one : requests) EXPECT_EQ(torii_request_free(&one), TORII_OK) << last_error();
  });
}

/// A test of all looks at each of them: a failed team is noticed behind a request that does not end.
TEST(Progress, ATestOfAllTestsAll) {
  std::atomic<bool> has_started = false;
  std::atomic<bool> has_seen = false;
  run_as_threads(team_of(2), [&](torii_context*, torii_team* slow) {
    torii_team* failing = nullptr;
    ASSERT_EQ(torii_team_split(slow, 0, 0, nullptr, &failing), TORII_OK) << last_error();
    const bool is_first = torii_team_rank(slow) == 0;
    std::vector<Operation> operations = operations_of(torii_team_rank(slow), 2);
    std::vector<torii_request*> requests(2);
    const torii_call late = operations[0].call();
    const torii_call failed = operations[1].call();
    if (is_first) {
      ASSERT_EQ(torii_start(slow, &late, &requests[0]), TORII_OK) << last_error();
      ASSERT_EQ(torii_start(failing, &failed, &requests[1]), TORII_OK) << last_error();
      has_started = true;
      int done = 0;
      while (torii_team_health(failing) != TORII_ABORTED) {
        ASSERT_EQ(torii_test_all(requests.data(), 2, &done), TORII_OK) << last_error();
        ASSERT_EQ(done, 0);
      }
      EXPECT_NE(requests[1], nullptr) << "nothing is freed before all have ended";
      has_seen = true;
      EXPECT_EQ(torii_wait_all(requests.data(), 2), TORII_ABORTED);
    } else {
      while (!has_started) std::this_thread::yield();
      EXPECT_EQ(torii_team_abort(failing, "enough"), TORII_OK);
      while (!has_seen) std::this_thread::yield();
      EXPECT_EQ(torii_start(slow, &late, &requests[0]), TORII_OK) << last_error();
      EXPECT_EQ(torii_wait(&requests[0]), TORII_OK) << last_error();
    }
    EXPECT_TRUE(operations[0].is_right(2, 0));
    EXPECT_EQ(torii_team_destroy(failing), TORII_OK) << last_error();
  });
}

/// The time that the calling thread has had a CPU.
double own_cpu_s() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

TEST(Progress, AWaitForAnySleeps) {
  std::atomic<bool> has_started = false;
  run_as_threads(team_of(2, "WAIT=sleep"), [&](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    std::vector<Operation> operations = operations_of(rank, 4);
    if (rank == 1) {
      while (!has_started) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
    std::vector<torii_request*> requests = start_all(team, operations);
    has_started = true;
    const double before_s = own_cpu_s();
    int index = -1;
    EXPECT_EQ(torii_wait_any(requests.data(), 4, &index), TORII_OK) << last_error();
    EXPECT_GE(index, 0);
    EXPECT_LT(own_cpu_s() - before_s, 0.25);
    EXPECT_EQ(torii_wait_all(requests.data(), 4), TORII_OK) << last_error();
  });
}

TEST(Progress, AListIsOfOneContext) {
  std::atomic<torii_request*> of_other = nullptr;
  std::atomic<bool> has_asked = false;
  run_as_threads(team_of(2), [&](torii_context*, torii_team* team) {
    std::int64_t one = 1;
    torii_call call = make_call(TORII_ALLREDUCE, &one, &one, 1, TORII_I64);
    torii_request* request = nullptr;
    ASSERT_EQ(torii_start(team, &call, &request), TORII_OK) << last_error();
    if (torii_team_rank(team) == 1) {
      of_other = request;
      while (!has_asked) std::this_thread::yield();
    } else {
      while (of_other == nullptr) std::this_thread::yield();
      torii_request* mixed[] = {nullptr, request, of_other};
      int index = 0;
      EXPECT_EQ(torii_wait_any(mixed, 3, &index), TORII_INVALID_ARGUMENT);
      EXPECT_EQ(last_error(), "requests 1 and 2 are of two contexts; all of a list must be of one");
      has_asked = true;
    }
    EXPECT_EQ(torii_wait(&request), TORII_OK) << last_error();
  });
}

}  // namespace
}  // namespace torii::tests
