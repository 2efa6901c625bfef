// SPDX-License-Identifier: Apache-2.0
// Groups of collectives and the threads to which they belong.
#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "tests/conformance/numbered_operation.hpp"
#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

/// Calls of other threads on the same team are made at once, and may be a group of their own.
TEST(GroupsOfThreads, AreTheirOwn) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* whole) {
    torii_team_options options = {};
    options.size = sizeof(options);
    options.many_callers = 1;
    torii_team* team = nullptr;
    ASSERT_EQ(torii_team_split(whole, 0, torii_team_rank(whole), &options, &team), TORII_OK) << torii_last_error();
    std::array<int, 2> own = {1, 2};
    std::array<int, 3> other = {3, 4, 5};
    ASSERT_EQ(torii_group_begin(team), TORII_OK);
    for (int& one : own) ASSERT_EQ(torii_allreduce(team, &one, &one, 1, TORII_I32, TORII_SUM), TORII_OK);
    std::thread([&] {
      EXPECT_EQ(torii_group_end(team), TORII_INVALID_ARGUMENT) << "this thread is in none";
      EXPECT_EQ(torii_allreduce(team, &other[0], &other[0], 1, TORII_I32, TORII_SUM), TORII_OK) << torii_last_error();
      EXPECT_EQ(other[0], 6);
      ASSERT_EQ(torii_group_begin(team), TORII_OK) << torii_last_error();
      EXPECT_EQ(torii_allreduce(team, &other[1], &other[1], 1, TORII_I32, TORII_SUM), TORII_OK);
      EXPECT_EQ(torii_allreduce(team, &other[2], &other[2], 1, TORII_I32, TORII_SUM), TORII_OK);
      EXPECT_EQ(torii_group_end(team), TORII_OK) << torii_last_error();
    }).join();
    EXPECT_EQ(other, (std::array<int, 3>{6, 8, 10}));
    EXPECT_EQ(own, (std::array<int, 2>{1, 2}));
    ASSERT_EQ(torii_group_end(team), TORII_OK) << torii_last_error();
    EXPECT_EQ(own, (std::array<int, 2>{2, 4}));
    ASSERT_EQ(torii_barrier(team), TORII_OK);
    ASSERT_EQ(torii_team_destroy(team), TORII_OK) << torii_last_error();
  });
}

/// A thread may end in its group; the team goes on without its calls.
TEST(GroupsOfThreads, MayBeLeftByAThreadThatEnds) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    int value = 1;
    std::thread([&] {
      ASSERT_EQ(torii_group_begin(team), TORII_OK);
      EXPECT_EQ(torii_allreduce(team, &value, &value, 1, TORII_I32, TORII_SUM), TORII_OK);
    }).join();
    EXPECT_EQ(value, 1);
    ASSERT_EQ(torii_allreduce(team, &value, &value, 1, TORII_I32, TORII_SUM), TORII_OK) << torii_last_error();
    EXPECT_EQ(value, 2);
  });
}

/// A later team may get the address of one that was destroyed while this thread was in a group of it.
TEST(GroupsOfThreads, GoWithTheirTeams) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* whole) {
    for (int round = 0; round < 20; ++round) {
      torii_team* team = nullptr;
      ASSERT_EQ(torii_team_split(whole, 0, torii_team_rank(whole), nullptr, &team), TORII_OK) << torii_last_error();
      EXPECT_EQ(torii_group_end(team), TORII_INVALID_ARGUMENT) << "round " << round << ": there is no group yet";
      ASSERT_EQ(torii_group_begin(team), TORII_OK) << "round " << round << ": " << torii_last_error();
      std::thread([&] { EXPECT_EQ(torii_team_destroy(team), TORII_OK) << torii_last_error(); }).join();
    }
    EXPECT_EQ(torii_barrier(whole), TORII_OK) << torii_last_error();
  });
}

}  // namespace
}  // namespace torii::tests
