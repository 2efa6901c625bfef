// SPDX-License-Identifier: Apache-2.0
// pthread_cancel() on a thread that is in a call: the call ends as it would have, then the thread.
#include <gtest/gtest.h>
#include <pthread.h>
#include <torii/torii.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <vector>

#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

/// Runs `call` on a thread of its own, cancels that 60 ms later, and tells whether the call ended and the thread did so
/// by being cancelled.
bool is_cancelled_after(const std::function<void()>& call) {
  struct Call {
    const std::function<void()>& body;
    std::atomic<bool> has_ended = false;
    static void* run(void* data) {
      Call& self = *static_cast<Call*>(data);
      self.body();
      self.has_ended = true;
      pthread_testcancel();
      return nullptr;
    }
  } one{call};
  pthread_t thread{};
  void* result = nullptr;
  EXPECT_EQ(pthread_create(&thread, nullptr, &Call::run, &one), 0);
  usleep(60'000);
  EXPECT_EQ(pthread_cancel(thread), 0);
  EXPECT_EQ(pthread_join(thread, &result), 0);
  return result == PTHREAD_CANCELED && one.has_ended;
}

/// Waits at a cancellation point, as functions of a launcher do.
int exchange_slowly(const void* mine, void* all, std::size_t bytes, void*) {
  usleep(50'000);
  std::memcpy(all, mine, bytes);
  return 0;
}

TEST(Cancellation, OfAThreadThatMakesAContext) {
  torii_context_options options = {};
  options.size = sizeof(options);
  options.rank = 0;
  options.ranks = 1;
  options.exchange = exchange_slowly;
  torii_context* context = nullptr;
  torii_status status = TORII_INTERNAL;
  EXPECT_TRUE(is_cancelled_after([&] { status = torii_context_create(&options, &context); }));
  ASSERT_EQ(status, TORII_OK) << torii_last_error();
  torii_team* team = nullptr;
  EXPECT_TRUE(is_cancelled_after([&] { status = torii_team_create(context, nullptr, &team); }));
  ASSERT_EQ(status, TORII_OK) << torii_last_error();
  EXPECT_EQ(torii_barrier(team), TORII_OK);
  EXPECT_EQ(torii_team_destroy(team), TORII_OK);
  EXPECT_EQ(torii_context_destroy(context), TORII_OK);
}

/// The second rank comes when the thread of the first has been cancelled.
void cancel_while_waiting(const std::function<torii_status(torii_team*)>& call, void (*idle)(void*) = nullptr,
                          const std::vector<int>& nodes = {}, int calls_before = 0) {
  ThreadTeam ranks;
  ranks.idle = idle;
  ranks.nodes = nodes;
  run_as_threads(ranks, [&](torii_context*, torii_team* team) {
    for (int i = 0; i < calls_before; ++i) ASSERT_EQ(call(team), TORII_OK) << torii_last_error();
    if (torii_team_rank(team) == 1) {
      usleep(200'000);
      EXPECT_EQ(call(team), TORII_OK);
    } else {
      torii_status status = TORII_INTERNAL;
      EXPECT_TRUE(is_cancelled_after([&] { status = call(team); }));
      EXPECT_EQ(status, TORII_OK);
    }
    EXPECT_EQ(torii_barrier(team), TORII_OK);
  });
}

/// Two bytes for each of two ranks.
torii_status exchange_bytes(torii_team* team) {
  const std::size_t counts[] = {2, 2};
  const std::size_t displacements[] = {0, 2};
  const unsigned char rank = static_cast<unsigned char>(torii_team_rank(team));
  const unsigned char input[] = {rank, rank, rank, rank};
  unsigned char result[] = {9, 9, 9, 9};
  const torii_status status =
      torii_alltoallv(team, input, counts, displacements, result, counts, displacements, TORII_U8);
  return result[1] == 0 && result[3] == 1 ? status : TORII_INTERNAL;
}

TEST(Cancellation, OfAThreadWhoseFunctionWritesALeaf) {
  ThreadTeam ranks;
  ranks.ranks = 1;
  run_as_threads(ranks, [](torii_context*, torii_team* team) {
    torii_leaves* leaves = nullptr;
    ASSERT_EQ(torii_leaves_create(team, 2, 0, 2, &leaves), TORII_OK) << torii_last_error();
    float result = 0;
    torii_call call = make_call(TORII_ALLREDUCE, nullptr, &result, 1, TORII_F32);
    call.leaves = leaves;
    call.leaf = [](std::size_t, void* out, void*) {
      usleep(50'000);
      *static_cast<float*>(out) = 3;
      return 0;
    };
    torii_status status = TORII_INTERNAL;
    EXPECT_TRUE(is_cancelled_after([&] { status = torii_run(team, &call); }));
    EXPECT_EQ(status, TORII_OK);
    EXPECT_EQ(result, 6.0F);
    EXPECT_EQ(torii_leaves_destroy(leaves), TORII_OK);
  });
}

TEST(Cancellation, OfAThreadInABlockingCall) { cancel_while_waiting(torii_barrier); }

/// That takes the short way of calls like ones before.
TEST(Cancellation, OfAThreadInARepeatedCall) {
  for (const std::vector<int>& nodes : kPlacesOfTwo) {
    cancel_while_waiting(torii_barrier, nullptr, nodes, 10);
    cancel_while_waiting(exchange_bytes, nullptr, nodes, 10);
  }
}

TEST(Cancellation, OfAThreadAtTheEndOfAGroup) {
  cancel_while_waiting([](torii_team* team) {
    int data[2] = {1, 2};
    torii_status status = torii_group_begin(team);
    for (int& one : data) {
      if (status == TORII_OK) status = torii_allreduce(team, &one, &one, 1, TORII_I32, TORII_SUM);
    }
    return status == TORII_OK ? torii_group_end(team) : status;
  });
}

TEST(Cancellation, OfAThreadThatWaitsForARequest) {
  cancel_while_waiting([](torii_team* team) {
    std::int64_t one = 1;
    std::int64_t sum = 0;
    const torii_call call = make_call(TORII_ALLREDUCE, &one, &sum, 1, TORII_I64);
    torii_request* request = nullptr;
    if (torii_start(team, &call, &request) != TORII_OK) return TORII_INTERNAL;
    const torii_status status = torii_wait(&request);
    return sum == 2 ? status : TORII_INTERNAL;
  });
}

TEST(Cancellation, OfAThreadInTheEmbeddersIdleFunction) {
  cancel_while_waiting(torii_barrier, [](void*) { usleep(100); });
}

}  // namespace
}  // namespace torii::tests
