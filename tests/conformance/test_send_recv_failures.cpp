// SPDX-License-Identifier: Apache-2.0
// Sends and receives over the public interface that are refused or fail.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/numbered_operation.hpp"
#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

TEST(SendRecvRefusals, SayWhatIsWrongAndLeaveTheTeamAsItWas) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    int value = 1;
    const auto text = [] { return std::string(torii_last_error()); };
    EXPECT_EQ(torii_send(nullptr, &value, 1, TORII_I32, 0, 0), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(text(), "team is NULL");
    EXPECT_EQ(torii_send(team, &value, 1, TORII_I32, 2, 0), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(text(), "the rank is 2; it must be from 0 to 1");
    EXPECT_EQ(torii_send(team, &value, 1, TORII_I32, TORII_ANY_RANK, 0), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(torii_recv(team, &value, 1, TORII_I32, -2, 0, nullptr), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(text(), "the rank is -2; it must be from 0 to 1, or TORII_ANY_RANK");
    EXPECT_EQ(torii_send(team, &value, 1, TORII_I32, 1, TORII_ANY_TAG), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(text(), "the tag is -1; it must be 0 or more");
    EXPECT_EQ(torii_recv(team, &value, 1, TORII_I32, 1, -2, nullptr), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(text(), "the tag is -2; it must be 0 or more, or TORII_ANY_TAG");
    EXPECT_EQ(torii_send(team, nullptr, 1, TORII_I32, 1, 0), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(text(), "the buffer is NULL, but count is not 0");
    EXPECT_EQ(torii_send(team, &value, SIZE_MAX / 2, TORII_I32, 1, 0), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(torii_send(team, &value, 1, static_cast<torii_type>(29), 1, 0), TORII_INVALID_ARGUMENT);
    EXPECT_NE(text().find("type is 29"), std::string::npos) << text();
    torii_received received = {};
    EXPECT_EQ(torii_recv(team, &value, 1, TORII_I32, 1, 0, &received), TORII_INVALID_ARGUMENT);
    EXPECT_NE(text().find("received->size is 0"), std::string::npos) << text();
    EXPECT_EQ(torii_start_send(team, &value, 1, TORII_I32, 1, 0, nullptr), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(torii_group_end(team), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(torii_group_begin(nullptr), TORII_INVALID_ARGUMENT);
    ASSERT_EQ(torii_group_begin(team), TORII_OK);
    EXPECT_EQ(torii_group_begin(team), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(torii_team_destroy(team), TORII_INVALID_ARGUMENT);
    EXPECT_NE(text().find("torii_group_end"), std::string::npos) << text();
    EXPECT_EQ(torii_send(team, &value, 1, TORII_I32, 9, 0), TORII_INVALID_ARGUMENT) << "alone";
    ASSERT_EQ(torii_group_end(team), TORII_OK);
    EXPECT_EQ(torii_barrier(team), TORII_OK) << torii_last_error();
  });
}

TEST(SendRecvRefusals, OfWhatDoesNotFit) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    std::array<int, 4> value = {};
    if (torii_team_rank(team) == 0) {
      ASSERT_EQ(torii_send(team, value.data(), 4, TORII_I32, 1, 5), TORII_OK);
      EXPECT_EQ(torii_recv(team, value.data(), 1, TORII_I32, 1, 6, nullptr), TORII_MISMATCH);
    } else {
      EXPECT_EQ(torii_recv(team, value.data(), 3, TORII_F32, 0, 5, nullptr), TORII_MISMATCH);
    }
    const std::string text = torii_last_error();
    EXPECT_NE(text.find("sends 16 bytes of i32 with tag 5 to rank 1, whose receive has room for 12 bytes of f32"),
              std::string::npos)
        << text;
  });
}

TEST(SendRecvFailures, AMissingSendEndsAtTheDeadlineAndNamesTheRank) {
  run_as_threads(team_of(3, "TIMEOUT=0.3"), [](torii_context*, torii_team* team) {
    if (torii_team_rank(team) != 1) return;
    int value = 0;
    EXPECT_EQ(torii_recv(team, &value, 1, TORII_I32, 2, 4, nullptr), TORII_TIMEOUT);
    const std::string text = torii_last_error();
    EXPECT_NE(text.find("receive of up to 1 x i32, tag 4, from rank 2"), std::string::npos) << text;
    EXPECT_NE(text.find("waiting for rank 2"), std::string::npos) << text;
    EXPECT_EQ(torii_send(team, &value, 1, TORII_I32, 2, 4), TORII_POISONED);
  });
}

/// Other operations of the team end all the time, by the shortest way: nothing stands still.
TEST(SendRecvFailures, AReceiveIsNotLateWhileCallsEnd) {
  for (const std::vector<int>& nodes : kPlacesOfTwo) {
    ThreadTeam ranks = team_of(2, "TIMEOUT=0.4");
    ranks.nodes = nodes;
    run_as_threads(ranks, [](torii_context*, torii_team* team) {
      const int rank = torii_team_rank(team);
      int value = 0, received = 0, is_done = 0;
      torii_request* request = nullptr;
      if (rank == 0) {
        ASSERT_EQ(torii_start_recv(team, &received, 1, TORII_I32, 1, 4, nullptr, &request), TORII_OK);
      }
      for (int i = 0; i < 75; ++i) {
        if (rank == 0) {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          ASSERT_EQ(torii_test(&request, &is_done), TORII_OK) << torii_last_error();
          value = i;
        }
        ASSERT_EQ(torii_broadcast(team, &value, 1, TORII_I32, 0), TORII_OK) << torii_last_error();
        ASSERT_EQ(value, i);
      }
      if (rank == 1) {
        ASSERT_EQ(torii_send(team, &value, 1, TORII_I32, 0, 4), TORII_OK) << torii_last_error();
      } else {
        ASSERT_EQ(torii_wait(&request), TORII_OK) << torii_last_error();
        EXPECT_EQ(received, 74);
      }
    });
  }
}

TEST(SendRecvFailures, ALongSendThatNobodyReceivesEndsAtTheDeadline) {
  run_as_threads(team_of(2, "TIMEOUT=0.3"), [](torii_context*, torii_team* team) {
    if (torii_team_rank(team) != 0) return;
    const std::vector<int> sent(20000);
    EXPECT_EQ(torii_send(team, sent.data(), sent.size(), TORII_I32, 1, 4), TORII_TIMEOUT);
    EXPECT_NE(std::string(torii_last_error()).find("to receive it"), std::string::npos) << torii_last_error();
  });
}

TEST(SendRecvFailures, AnAbortEndsThem) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    if (torii_team_rank(team) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      ASSERT_EQ(torii_team_abort(team, "no more"), TORII_OK);
      return;
    }
    int value = 0;
    torii_request* request = nullptr;
    ASSERT_EQ(torii_start_recv(team, &value, 1, TORII_I32, 0, 9, nullptr, &request), TORII_OK);
    EXPECT_EQ(torii_recv(team, &value, 1, TORII_I32, TORII_ANY_RANK, 8, nullptr), TORII_ABORTED);
    EXPECT_NE(std::string(torii_last_error()).find("no more"), std::string::npos) << torii_last_error();
    EXPECT_EQ(torii_wait(&request), TORII_ABORTED);
  });
}

}  // namespace
}  // namespace torii::tests
