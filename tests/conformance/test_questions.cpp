// SPDX-License-Identifier: Apache-2.0
// Questions that change nothing: names, places of ranks, the health of a team. tests/processes asks about lost ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

#ifdef TORII_TEST_LIBFABRIC
constexpr bool kHasSeveralNodes = true;
#else
constexpr bool kHasSeveralNodes = false;
#endif

TEST(Questions, NamesAreThoseOfCommandLines) {
  EXPECT_STREQ(torii_type_name(TORII_BF16), "bf16");
  EXPECT_STREQ(torii_op_name(TORII_SUM), "sum");
  EXPECT_STREQ(torii_op_name(TORII_AVG), "avg");
  EXPECT_STREQ(torii_collective_name(TORII_ALL_GATHER), "all_gather");
  std::set<std::string> names;
  for (int type = TORII_I8; type <= TORII_FLOAT8_E5M2; ++type)
    names.insert(torii_type_name(static_cast<torii_type>(type)));
  for (int op = TORII_SUM; op <= TORII_PREMUL_SUM; ++op) names.insert(torii_op_name(static_cast<torii_op>(op)));
  for (int collective = TORII_BARRIER; collective <= TORII_EXSCAN; ++collective) {
    names.insert(torii_collective_name(static_cast<torii_collective>(collective)));
  }
  EXPECT_EQ(names.size(), 22U + 15U + 11U);
  for (const int unknown : {-1, 99}) {
    EXPECT_EQ(torii_type_name(static_cast<torii_type>(unknown)), nullptr);
    EXPECT_EQ(torii_op_name(static_cast<torii_op>(unknown)), nullptr);
    EXPECT_EQ(torii_collective_name(static_cast<torii_collective>(unknown)), nullptr);
    EXPECT_EQ(torii_type_bytes(static_cast<torii_type>(unknown)), 0U);
  }
}

TEST(Questions, TheHeaderHasTheVersionOfTheLibrary) {
  const std::string version = std::to_string(TORII_VERSION_MAJOR) + "." + std::to_string(TORII_VERSION_MINOR) + "." +
                              std::to_string(TORII_VERSION_PATCH);
  EXPECT_EQ(version, torii_version());
  EXPECT_EQ(TORII_VERSION_NUMBER, TORII_VERSION_MAJOR * 10000 + TORII_VERSION_MINOR * 100 + TORII_VERSION_PATCH);
}

TEST(Questions, PlacesOfRanks) {
  const std::vector<int> nodes = kHasSeveralNodes ? std::vector<int>{0, 1, 0, 1, 0} : std::vector<int>(5, 0);
  ThreadTeam options = {5, "TIMEOUT=10", "", "", "", 0};
  options.nodes = nodes;
  run_as_threads(options, [&](torii_context* context, torii_team* team) {
    const int own = torii_context_rank(context);
    EXPECT_EQ(torii_context_nodes(context), kHasSeveralNodes ? 2 : 1);
    for (int rank = 0; rank < 5; ++rank) {
      EXPECT_EQ(torii_context_node(context, rank), nodes[static_cast<std::size_t>(rank)]);
      ASSERT_NE(torii_context_host(context, rank), nullptr);
      EXPECT_STRNE(torii_context_host(context, rank), "");
    }
    const int node = nodes[static_cast<std::size_t>(own)];
    EXPECT_EQ(torii_context_local_rank(context), std::count(nodes.begin(), nodes.begin() + own, node));
    EXPECT_EQ(torii_context_local_ranks(context), std::count(nodes.begin(), nodes.end(), node));
    EXPECT_EQ(torii_team_context(team), context);

    torii_team* part = nullptr;  // in reverse order
    ASSERT_EQ(torii_team_split(team, own % 2, -own, nullptr, &part), TORII_OK) << torii_last_error();
    for (int member = 0; member < torii_team_ranks(part); ++member) {
      EXPECT_EQ(torii_team_context_rank(part, member), (own % 2 == 0 ? 4 : 3) - 2 * member);
    }
    EXPECT_EQ(torii_team_context_rank(part, torii_team_ranks(part)), -1);
    EXPECT_EQ(torii_team_context(part), context);
    EXPECT_EQ(torii_team_destroy(part), TORII_OK);
    for (const int rank : {-1, 5}) {
      EXPECT_EQ(torii_context_node(context, rank), -1);
      EXPECT_EQ(torii_context_host(context, rank), nullptr);
      EXPECT_EQ(torii_team_context_rank(team, rank), -1);
    }
    EXPECT_EQ(torii_team_lost(team, nullptr, 0), 0);
    EXPECT_EQ(torii_team_health(team), TORII_OK);
  });
}

TEST(Questions, NothingIsNoTeam) {
  EXPECT_EQ(torii_context_nodes(nullptr), -1);
  EXPECT_EQ(torii_context_node(nullptr, 0), -1);
  EXPECT_EQ(torii_context_host(nullptr, 0), nullptr);
  EXPECT_EQ(torii_context_local_rank(nullptr), -1);
  EXPECT_EQ(torii_context_local_ranks(nullptr), -1);
  EXPECT_EQ(torii_team_context(nullptr), nullptr);
  EXPECT_EQ(torii_team_context_rank(nullptr, 0), -1);
  EXPECT_EQ(torii_team_lost(nullptr, nullptr, 0), -1);
  EXPECT_EQ(torii_team_health(nullptr), TORII_INVALID_ARGUMENT);
}

/// While another thread of each rank asks all the time: ok, until rank 0 aborts the team; then `poisoned` until the own
/// call has reported the cause, and that cause afterwards.
TEST(Questions, HealthFromAnotherThread) {
  for (const std::vector<int>& nodes : {std::vector<int>{}, std::vector<int>{0, 0, 1}}) {
    if (!nodes.empty() && !kHasSeveralNodes) continue;
    ThreadTeam options = {3, "TIMEOUT=10", "", "", "", 0};
    options.nodes = nodes;
    std::barrier left(3);  // the first call has ended on all ranks
    run_as_threads(options, [&](torii_context*, torii_team* team) {
      std::atomic<bool> is_over = false;
      std::atomic<int> other = 0;
      std::atomic<torii_status> last = TORII_OK;
      std::thread asker([&] {
        while (!is_over) {
          last = torii_team_health(team);
          if (last != TORII_OK && last != TORII_POISONED && last != TORII_ABORTED) ++other;
        }
        last = torii_team_health(team);
        EXPECT_STREQ(torii_last_error(), "aborted by rank 0: enough");
      });
      EXPECT_EQ(torii_barrier(team), TORII_OK) << torii_last_error();
      left.arrive_and_wait();
      if (torii_team_rank(team) == 0) {
        EXPECT_EQ(torii_team_abort(team, "enough"), TORII_OK);
      }
      torii_status status = TORII_OK;
      while (status == TORII_OK) status = torii_barrier(team);
      EXPECT_EQ(status, TORII_ABORTED) << torii_last_error();
      is_over = true;
      asker.join();
      EXPECT_EQ(last, TORII_ABORTED);
      EXPECT_EQ(other, 0);
      EXPECT_EQ(torii_team_lost(team, nullptr, 0), 0);
    });
  }
}

}  // namespace
}  // namespace torii::tests
