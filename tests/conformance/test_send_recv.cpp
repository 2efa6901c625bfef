// SPDX-License-Identifier: Apache-2.0
// Sends and receives over the public interface.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/numbered_operation.hpp"
#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

std::vector<int> values(std::size_t count, int first) {
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), first);
  return all;
}

constexpr std::array<std::size_t, 8> kSentCounts = {0, 1, 6, 10, 11, 4096, 4097, 200'003};

TEST(SendRecv, BytesOfAnyLengthGoThereAndBack) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    for (const std::size_t count : kSentCounts) {
      std::vector<int> got(count, -1);
      for (int round = 0; round < 3; ++round) {
        const std::vector<int> sent = values(count, round);
        torii_received received = {.size = sizeof(received), .rank = -1, .tag = -1, .count = 0};
        if (rank == 0) {
          ASSERT_EQ(torii_send(team, sent.data(), count, TORII_I32, 1, 7), TORII_OK) << torii_last_error();
          ASSERT_EQ(torii_recv(team, got.data(), count, TORII_I32, 1, 8, &received), TORII_OK) << torii_last_error();
          EXPECT_EQ(got, values(count, round + 1));
          EXPECT_EQ(received.rank, 1);
          EXPECT_EQ(received.tag, 8);
          EXPECT_EQ(received.count, count);
        } else {
          ASSERT_EQ(torii_recv(team, got.data(), count, TORII_I32, TORII_ANY_RANK, TORII_ANY_TAG, &received), TORII_OK)
              << torii_last_error();
          EXPECT_EQ(received.rank, 0);
          EXPECT_EQ(received.tag, 7);
          EXPECT_EQ(got, sent);
          const std::vector<int> answer = values(count, round + 1);
          ASSERT_EQ(torii_send(team, answer.data(), count, TORII_I32, 0, 8), TORII_OK) << torii_last_error();
        }
      }
    }
  });
}

TEST(SendRecv, OutOfMemoryThatPeersReachInPlace) {
  run_as_threads(team_of(2), [](torii_context* context, torii_team* team) {
    constexpr std::size_t kCount = 300'000;
    void* memory = nullptr;
    ASSERT_EQ(torii_allocate(context, 2 * kCount * sizeof(int), &memory), TORII_OK) << torii_last_error();
    int* const own = static_cast<int*>(memory);
    const int rank = torii_team_rank(team);
    const std::vector<int> mine = values(kCount, 1000 * rank);
    std::memcpy(own, mine.data(), kCount * sizeof(int));
    ASSERT_EQ(torii_group_begin(team), TORII_OK);
    EXPECT_EQ(torii_send(team, own, kCount, TORII_I32, 1 - rank, 0), TORII_OK);
    EXPECT_EQ(torii_recv(team, own + kCount, kCount, TORII_I32, 1 - rank, 0, nullptr), TORII_OK);
    ASSERT_EQ(torii_group_end(team), TORII_OK) << torii_last_error();
    EXPECT_EQ(std::vector<int>(own + kCount, own + 2 * kCount), values(kCount, 1000 * (1 - rank)));
    EXPECT_EQ(torii_free(context, memory), TORII_OK);
  });
}

TEST(SendRecv, AGroupIsNoDeadlockInAnyOrder) {
  for (const int ranks : {1, 2, 3, 4}) {
    run_as_threads(team_of(ranks), [ranks](torii_context*, torii_team* team) {
      const int rank = torii_team_rank(team);
      const std::size_t count = 70'000;
      std::vector<std::vector<int>> got(static_cast<std::size_t>(ranks), std::vector<int>(count));
      std::vector<std::vector<int>> sent;
      std::vector<torii_received> received(static_cast<std::size_t>(ranks));
      for (int peer = 0; peer < ranks; ++peer) sent.push_back(values(count, rank * 10 + peer));
      ASSERT_EQ(torii_group_begin(team), TORII_OK) << torii_last_error();
      for (int peer = 0; peer < ranks; ++peer) {
        const auto at = static_cast<std::size_t>(peer);
        EXPECT_EQ(torii_send(team, sent[at].data(), count, TORII_I32, peer, 3), TORII_OK) << torii_last_error();
      }
      for (int peer = ranks - 1; peer >= 0; --peer) {
        const auto at = static_cast<std::size_t>(peer);
        received[at].size = sizeof(torii_received);
        EXPECT_EQ(torii_recv(team, got[at].data(), count, TORII_I32, peer, 3, &received[at]), TORII_OK);
      }
      ASSERT_EQ(torii_group_end(team), TORII_OK) << torii_last_error();
      for (int peer = 0; peer < ranks; ++peer) {
        const auto at = static_cast<std::size_t>(peer);
        EXPECT_EQ(got[at], values(count, peer * 10 + rank));
        EXPECT_EQ(received[at].rank, peer);
      }
    });
  }
}

TEST(SendRecv, StartedOnesEndInAnyOrderOfWaits) {
  run_as_threads(team_of(3), [](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    constexpr int kEach = 20;
    if (rank == 0) {
      std::vector<int> got(2 * kEach, -1);
      std::vector<torii_request*> requests(2 * kEach);
      for (int i = 0; i < 2 * kEach; ++i) {
        ASSERT_EQ(torii_start_recv(team, &got[static_cast<std::size_t>(i)], 1, TORII_I32, 1 + i / kEach, i % kEach,
                                   nullptr, &requests[static_cast<std::size_t>(i)]),
                  TORII_OK);
      }
      ASSERT_EQ(torii_wait_all(requests.data(), 2 * kEach), TORII_OK) << torii_last_error();
      for (int i = 0; i < 2 * kEach; ++i) {
        EXPECT_EQ(got[static_cast<std::size_t>(i)], (1 + i / kEach) * 100 + i % kEach);
        EXPECT_EQ(requests[static_cast<std::size_t>(i)], nullptr);
      }
      return;
    }
    for (int tag = kEach - 1; tag >= 0; --tag) {
      const int value = rank * 100 + tag;
      ASSERT_EQ(torii_send(team, &value, 1, TORII_I32, 0, tag), TORII_OK) << torii_last_error();
    }
  });
}

/// More sends than there are slots, which the other rank takes while it waits in a collective.
TEST(SendRecv, CollectivesMayPassSends) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    constexpr int kSends = 100;
    int value = rank;
    // Both know sends from here on.
    if (rank == 0) {
      ASSERT_EQ(torii_send(team, &value, 1, TORII_I32, 1, 0), TORII_OK);
    } else {
      ASSERT_EQ(torii_recv(team, &value, 1, TORII_I32, 0, 0, nullptr), TORII_OK);
    }
    if (rank == 0) {
      for (int i = 0; i < kSends; ++i) ASSERT_EQ(torii_send(team, &i, 1, TORII_I32, 1, 1), TORII_OK);
    }
    ASSERT_EQ(torii_barrier(team), TORII_OK) << torii_last_error();
    if (rank == 1) {
      for (int i = 0; i < kSends; ++i) {
        ASSERT_EQ(torii_recv(team, &value, 1, TORII_I32, 0, 1, nullptr), TORII_OK) << torii_last_error();
        ASSERT_EQ(value, i);
      }
    }
  });
}

/// The same although the other rank has neither sent nor received before.
TEST(SendRecv, ARankThatWaitsTakesItsFirstMessages) {
  run_as_threads(team_of(2, "TIMEOUT=5"), [](torii_context* context, torii_team* team) {
    const int sends = torii_context_nodes(context) == 1 ? 100 : 8;  // between nodes as many as there are slots
    for (int i = 0; i < sends && torii_team_rank(team) == 0; ++i) {
      ASSERT_EQ(torii_send(team, &i, 1, TORII_I32, 1, 1), TORII_OK) << torii_last_error();
    }
    ASSERT_EQ(torii_barrier(team), TORII_OK) << torii_last_error();
    for (int i = 0; i < sends && torii_team_rank(team) == 1; ++i) {
      int value = -1;
      ASSERT_EQ(torii_recv(team, &value, 1, TORII_I32, 0, 1, nullptr), TORII_OK) << torii_last_error();
      ASSERT_EQ(value, i);
    }
  });
}

TEST(SendRecv, AShortOneToTheRankItselfReturns) {
  run_as_threads(team_of(1), [](torii_context*, torii_team* team) {
    int value = 5;
    ASSERT_EQ(torii_send(team, &value, 1, TORII_I32, 0, 1), TORII_OK) << torii_last_error();
    value = 0;
    ASSERT_EQ(torii_recv(team, &value, 1, TORII_I32, 0, 1, nullptr), TORII_OK) << torii_last_error();
    EXPECT_EQ(value, 5);
  });
}

/// A group is its thread's: calls of others on the same team are as ever.
TEST(SendRecv, GroupsOfManyCallers) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* whole) {
    const int rank = torii_team_rank(whole);
    torii_team_options options = {};
    options.size = sizeof(options);
    options.many_callers = 1;
    torii_team* team = nullptr;
    ASSERT_EQ(torii_team_split(whole, 0, rank, &options, &team), TORII_OK) << torii_last_error();
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 4; ++caller) {
      callers.emplace_back([team, rank, caller] {
        for (int round = 0; round < 50; ++round) {
          const int sent = rank * 1000 + caller * 100 + round;
          int got = -1;
          const bool in_group = (caller + round) % 2 == 0;
          if (in_group) {
            ASSERT_EQ(torii_group_begin(team), TORII_OK) << torii_last_error();
          }
          ASSERT_EQ(torii_send(team, &sent, 1, TORII_I32, 1 - rank, caller), TORII_OK) << torii_last_error();
          ASSERT_EQ(torii_recv(team, &got, 1, TORII_I32, 1 - rank, caller, nullptr), TORII_OK) << torii_last_error();
          if (in_group) {
            ASSERT_EQ(torii_group_end(team), TORII_OK) << torii_last_error();
          }
          ASSERT_EQ(got, (1 - rank) * 1000 + caller * 100 + round);
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    ASSERT_EQ(torii_barrier(team), TORII_OK) << torii_last_error();
    ASSERT_EQ(torii_team_destroy(team), TORII_OK) << torii_last_error();
  });
}

TEST(SendRecv, TeamsOneAfterTheOtherSeeNoOldMessages) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    for (int round = 0; round < 12; ++round) {
      torii_team* part = nullptr;
      ASSERT_EQ(torii_team_split(team, 0, rank, nullptr, &part), TORII_OK) << torii_last_error();
      // The last send stays where it is.
      for (int number = 0; number < 3 && rank == 0; ++number) {
        const int value = round * 10 + number;
        ASSERT_EQ(torii_send(part, &value, 1, TORII_I32, 1, 0), TORII_OK) << torii_last_error();
      }
      for (int number = 0; number < 2 && rank == 1; ++number) {
        int value = -1;
        ASSERT_EQ(torii_recv(part, &value, 1, TORII_I32, 0, 0, nullptr), TORII_OK) << torii_last_error();
        ASSERT_EQ(value, round * 10 + number);
      }
      ASSERT_EQ(torii_barrier(part), TORII_OK);
      ASSERT_EQ(torii_team_destroy(part), TORII_OK);
    }
  });
}

TEST(SendRecv, AProgressThreadEndsThem) {
  run_as_threads(team_of(2, "HELPERS=1"), [](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    std::vector<int> got(100'000, -1);
    const std::vector<int> sent = values(got.size(), 5);
    torii_request* request = nullptr;
    if (rank == 0) {
      ASSERT_EQ(torii_start_send(team, sent.data(), sent.size(), TORII_I32, 1, 0, &request), TORII_OK);
    } else {
      ASSERT_EQ(torii_start_recv(team, got.data(), got.size(), TORII_I32, 0, 0, nullptr, &request), TORII_OK);
    }
    int done = 0;
    // A test that finds the request ended moves nothing, so whoever tests second has been served by threads.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    while (done == 0) ASSERT_EQ(torii_test(&request, &done), TORII_OK) << torii_last_error();
    if (rank == 1) {
      EXPECT_EQ(got, sent);
    }
  });
}

TEST(SendRecv, AWaitForAMomentSaysWhatItWaitsFor) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    int value = 0;
    torii_request* request = nullptr;
    if (torii_team_rank(team) == 1) {
      ASSERT_EQ(torii_start_recv(team, &value, 1, TORII_I32, 0, 9, nullptr, &request), TORII_OK);
      int done = 1;
      ASSERT_EQ(torii_wait_for(&request, 0.01, &done), TORII_OK);
      EXPECT_EQ(done, 0);
      EXPECT_NE(std::string(torii_last_error()).find("waiting for rank 0"), std::string::npos) << torii_last_error();
    }
    ASSERT_EQ(torii_barrier(team), TORII_OK);
    if (torii_team_rank(team) == 1) {
      EXPECT_EQ(torii_wait(&request), TORII_OK) << torii_last_error();
      EXPECT_EQ(value, 3);
    } else {
      value = 3;
      EXPECT_EQ(torii_send(team, &value, 1, TORII_I32, 1, 9), TORII_OK);
    }
  });
}

TEST(SendRecv, AReceiveThatHasMetNothingIsCancelled) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    int value = 0;
    torii_request* request = nullptr;
    int cancelled = 0;
    ASSERT_EQ(torii_start_recv(team, &value, 1, TORII_I32, TORII_ANY_RANK, 9, nullptr, &request), TORII_OK);
    ASSERT_EQ(torii_request_cancel(&request, &cancelled), TORII_OK) << torii_last_error();
    EXPECT_EQ(cancelled, 1);
    EXPECT_EQ(request, nullptr);
    EXPECT_EQ(torii_request_cancel(&request, &cancelled), TORII_INVALID_ARGUMENT);
    // To itself: the receive has met its send, so it is no longer to be had.
    ASSERT_EQ(torii_start_recv(team, &value, 1, TORII_I32, torii_team_rank(team), 1, nullptr, &request), TORII_OK);
    const int sent = 77;
    ASSERT_EQ(torii_send(team, &sent, 1, TORII_I32, torii_team_rank(team), 1), TORII_OK);
    ASSERT_EQ(torii_request_cancel(&request, &cancelled), TORII_OK);
    EXPECT_EQ(cancelled, 0);
    ASSERT_EQ(torii_wait(&request), TORII_OK);
    EXPECT_EQ(value, 77);
    const std::vector<int> large(100'000);
    ASSERT_EQ(torii_start_send(team, large.data(), large.size(), TORII_I32, torii_team_rank(team), 2, &request),
              TORII_OK);
    EXPECT_EQ(torii_request_cancel(&request, &cancelled), TORII_INVALID_ARGUMENT) << "a send";
    std::vector<int> got(large.size(), 4);
    ASSERT_EQ(torii_recv(team, got.data(), got.size(), TORII_I32, torii_team_rank(team), 2, nullptr), TORII_OK);
    ASSERT_EQ(torii_wait(&request), TORII_OK);
    EXPECT_EQ(got, large);
  });
}

}  // namespace
}  // namespace torii::tests
