// SPDX-License-Identifier: Apache-2.0
// Intervals that do not fit together, and calls over leaves that make no sense: one clear error on all ranks, after
// which the team goes on; or, where one rank alone cannot go on, a team that fails with the reason.
#include <torii/torii.h>

#include <barrier>

#include "tests/conformance/leaf_data.hpp"
#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

struct Claim {
  std::size_t leaves;
  std::size_t first;
  std::size_t count;
};

ThreadTeam team_of(int ranks) {
  ThreadTeam options;
  options.ranks = ranks;
  options.settings = "ARENA=1G\nTIMEOUT=20";
  return options;
}

/// The team serves a call over right intervals.
void expect_goes_on(torii_team* team) {
  const Leaves leaves(team, {2, 1, 3});
  const Bytes input = leaves.vectors(TORII_F32, 10, 10);
  Bytes result(40);
  ASSERT_EQ(torii_allreduce_leaves(leaves.get(), input.data(), 0, result.data(), 10, TORII_F32, TORII_SUM), TORII_OK)
      << torii_last_error();
  EXPECT_TRUE(same_bytes(result, sum_of_leaves(TORII_F32, TORII_SUM, 6, 10)));
}

/// All ranks get this text.
void expect_refusal(const std::vector<Claim>& claims, const std::string& text) {
  run_as_threads(team_of(3), [&](torii_context*, torii_team* team) {
    const Claim& own = claims[static_cast<std::size_t>(torii_team_rank(team))];
    torii_leaves* handle = nullptr;
    EXPECT_EQ(torii_leaves_create(team, own.leaves, own.first, own.count, &handle), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(handle, nullptr);
    EXPECT_EQ(std::string(torii_last_error()), text);
    expect_goes_on(team);
  });
}

TEST(LeavesRefusals, NameTheRankAndTheLeafOnAllRanks) {
  expect_refusal({{6, 0, 2}, {6, 2, 2}, {7, 4, 3}},
                 "rank 2 says that there are 7 leaves, rank 0 that there are 6; all ranks must give the same number");
  expect_refusal({{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}, "the number of leaves is 0; it must be from 1 to 2147483647");
  expect_refusal({{6, 0, 3}, {6, 2, 2}, {6, 4, 2}},
                 "rank 1 has leaf 2, which a rank before it has too; intervals must follow each other in the order of "
                 "ranks");
  expect_refusal({{6, 0, 1}, {6, 3, 1}, {6, 4, 2}},
                 "no rank before rank 1 has leaves 1 to 2; intervals must follow each other in the order of ranks");
  expect_refusal({{6, 0, 1}, {6, 1, 1}, {6, 2, 3}}, "no rank has leaf 5; intervals must cover all leaves");
  expect_refusal({{6, 0, 1}, {6, 1, 1}, {6, 2, 9}},
                 "rank 2 has 9 leaves from leaf 2 on, but the last of 6 leaves is leaf 5");
}

std::string refusal_of(torii_team* team, const torii_call& call) {
  EXPECT_EQ(torii_run(team, &call), TORII_INVALID_ARGUMENT);
  return torii_last_error();
}

TEST(LeavesRefusals, OfCallsThatMakeNoSense) {
  run_as_threads(team_of(3), [&](torii_context* context, torii_team* team) {
    const Leaves leaves(team, {2, 3, 2});
    std::vector<float> input(40);
    std::vector<float> result(40);
    torii_call call = make_call(TORII_ALL_GATHER, input.data(), result.data(), 4, TORII_F32);
    call.leaves = leaves.get();
    EXPECT_EQ(refusal_of(team, call),
              "leaves are set, but all_gather has none; use them with allreduce, reduce or reduce_scatter");
    call = make_call(TORII_ALLREDUCE, input.data(), result.data(), 4, TORII_F32, TORII_PREMUL_SUM);
    call.leaves = leaves.get();
    call.factor = input.data();
    EXPECT_EQ(refusal_of(team, call).find("op premul_sum is not defined over leaves"), 0U) << torii_last_error();
    call = make_call(TORII_ALLREDUCE, input.data(), result.data(), 4, TORII_F32);
    call.leaves = leaves.get();
    call.leaf_stride = 3;
    EXPECT_EQ(refusal_of(team, call), "leaf_stride is 3, but a leaf has 4 elements");
    torii_request* request = nullptr;
    EXPECT_EQ(torii_prepare(team, &call, &request), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(torii_last_error()), "leaf_stride is 3, but a leaf has 4 elements");
    call.leaf_stride = SIZE_MAX / 2;
    EXPECT_EQ(refusal_of(team, call).find("leaf_stride is 9223372036854775807, but with"), 0U) << torii_last_error();
    call.leaf_stride = 0;
    call.leaf = [](std::size_t, void*, void*) { return 0; };
    EXPECT_EQ(torii_group_begin(team), TORII_OK);
    EXPECT_EQ(refusal_of(team, call).find("leaf is set in a group"), 0U) << torii_last_error();
    EXPECT_EQ(torii_group_end(team), TORII_INVALID_ARGUMENT);
    call.leaf = nullptr;
    call.input = nullptr;
    EXPECT_EQ(refusal_of(team, call).find("input is NULL"), 0U) << torii_last_error();
    call.leaves = nullptr;
    call.leaf = [](std::size_t, void*, void*) { return 0; };
    EXPECT_EQ(refusal_of(team, call), "leaf is set, but leaves is NULL; torii_leaves_create makes it");
    call = make_call(TORII_REDUCE_SCATTER, input.data(), result.data(), 0, TORII_F32);
    const std::size_t counts[] = {1, 1, 1};
    call.unequal = 1;
    call.input_counts = counts;
    call.leaves = leaves.get();
    EXPECT_EQ(refusal_of(team, call), "leaves are set, but blocks are unequal; use equal blocks");
    torii_team* other = nullptr;
    ASSERT_EQ(torii_team_create(context, nullptr, &other), TORII_OK) << torii_last_error();
    call = make_call(TORII_ALLREDUCE, input.data(), result.data(), 4, TORII_F32);
    call.leaves = leaves.get();
    EXPECT_EQ(refusal_of(other, call),
              "leaves were made for another team; torii_leaves_create makes them for this one");
    EXPECT_EQ(torii_team_destroy(other), TORII_OK);
    EXPECT_EQ(torii_allreduce_leaves(nullptr, input.data(), 0, result.data(), 4, TORII_F32, TORII_SUM),
              TORII_INVALID_ARGUMENT);
    EXPECT_EQ(torii_allreduce_leaves(leaves.get(), input.data(), 0, result.data(), 4, TORII_BOOL, TORII_SUM), TORII_OK);
    EXPECT_EQ(
        torii_allreduce_leaves(leaves.get(), input.data(), 0, result.data(), 4, static_cast<torii_type>(31), TORII_SUM),
        TORII_INVALID_ARGUMENT);
    EXPECT_EQ(torii_leaves_create(team, 7, 0, 1, nullptr), TORII_INVALID_ARGUMENT);
    torii_leaves* handle = nullptr;
    EXPECT_EQ(torii_leaves_create(nullptr, 7, 0, 1, &handle), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(torii_leaves_destroy(nullptr), TORII_OK);
    expect_goes_on(team);
  });
}

TEST(LeavesRefusals, OfAForcedAlgorithmNameThoseThatCan) {
  ThreadTeam options = team_of(3);
  options.algorithm = "recursive_doubling";
  run_as_threads(options, [&](torii_context*, torii_team* team) {
    const Leaves leaves(team, {2, 3, 2});
    std::vector<float> input(40);
    EXPECT_EQ(torii_allreduce_leaves(leaves.get(), input.data(), 0, input.data(), 4, TORII_F32, TORII_SUM),
              TORII_UNSUPPORTED);
    EXPECT_EQ(std::string(torii_last_error()),
              "recursive_doubling cannot serve this call: its order is not that of 7 leaves in these intervals of 3 "
              "ranks; node (up to "
              "256 ranks) and binomial honour it for any intervals (those that can: binomial, node)");
  });
}

/// A rank that cannot have its leaf refuses the call; the others made it, so the team fails with the reason.
TEST(LeavesRefusals, OfALeafThatCannotBeWrittenFailTheTeam) {
  run_as_threads(team_of(3), [&](torii_context*, torii_team* team) {
    const Leaves leaves(team, {2, 3, 2});
    std::vector<float> result(4);
    torii_call call = make_call(TORII_ALLREDUCE, nullptr, result.data(), 4, TORII_F32);
    call.leaves = leaves.get();
    call.leaf = [](std::size_t leaf, void* out, void*) {
      std::fill_n(static_cast<float*>(out), 4, 1.0F);
      return leaf == 3 ? 5 : 0;
    };
    const torii_status status = torii_run(team, &call);
    EXPECT_EQ(status, torii_team_rank(team) == 1 ? TORII_ABORTED : TORII_MISMATCH) << torii_last_error();
    EXPECT_NE(std::string(torii_last_error()).find("could not write leaf 3: it returned 5"), std::string::npos)
        << torii_last_error();
  });
}

/// Calls over other intervals are other calls.
TEST(LeavesRefusals, OfCallsThatDifferBetweenRanks) {
  run_as_threads(team_of(2), [&](torii_context*, torii_team* team) {
    const Leaves leaves(team, {1, 2});
    const Leaves others(team, {2, 1});
    std::vector<float> input(8);
    std::vector<float> result(4);
    const Leaves& own = torii_team_rank(team) == 0 ? leaves : others;
    const torii_status status =
        torii_allreduce_leaves(own.get(), input.data(), 0, result.data(), 4, TORII_F32, TORII_SUM);
    EXPECT_EQ(status, TORII_MISMATCH) << torii_last_error();
    const std::string call = "calls allreduce of 4 x f32, op sum, over leaves";
    EXPECT_NE(std::string(torii_last_error())
                  .find("calls differ: rank 0 " + call + ", rank 1 " + call + ", over other leaves"),
              std::string::npos)
        << torii_last_error();
  });
}

TEST(LeavesRefusals, OfCallsOverLeavesOnOneRankOnlyNameThem) {
  run_as_threads(team_of(2), [&](torii_context*, torii_team* team) {
    const Leaves leaves(team, {1, 2});
    std::vector<float> input(8);
    std::vector<float> result(4);
    torii_call call = make_call(TORII_ALLREDUCE, input.data(), result.data(), 4, TORII_F32);
    if (torii_team_rank(team) == 0) call.leaves = leaves.get();
    EXPECT_EQ(torii_run(team, &call), TORII_MISMATCH) << torii_last_error();
    EXPECT_NE(std::string(torii_last_error())
                  .find("rank 0 calls allreduce of 4 x f32, op sum, over leaves, rank 1 calls "
                        "allreduce of 4 x f32, op sum"),
              std::string::npos)
        << torii_last_error();
  });
}

/// A function that fails when a started call runs: its rank refuses, the others fail with the reason. A persistent call
/// fails alike on all ranks.
TEST(LeavesRefusals, OfALeafInStartedAndPersistentCallsFailTheTeam) {
  for (const bool is_persistent : {false, true}) {
    std::barrier<> all_have_first(3);
    run_as_threads(team_of(3), [&](torii_context*, torii_team* team) {
      const Leaves leaves(team, {2, 3, 2});
      std::vector<float> result(4);
      bool fails = false;
      torii_call call = make_call(TORII_ALLREDUCE, nullptr, result.data(), 4, TORII_F32);
      call.leaves = leaves.get();
      call.leaf = [](std::size_t leaf, void* out, void* data) {
        std::fill_n(static_cast<float*>(out), 4, 1.0F);
        return leaf == 4 && *static_cast<const bool*>(data) ? 7 : 0;
      };
      call.leaf_data = &fails;
      torii_request* request = nullptr;
      if (is_persistent) {
        EXPECT_EQ(torii_prepare(team, &call, &request), TORII_OK) << torii_last_error();
        EXPECT_EQ(torii_restart(request), TORII_OK) << torii_last_error();
        EXPECT_EQ(torii_wait(&request), TORII_OK) << torii_last_error();
        EXPECT_EQ(result[3], 7.0F);
        all_have_first.arrive_and_wait();  // whoever is still in the first call would fail with the team
      }
      fails = true;
      torii_status status = is_persistent ? torii_restart(request) : torii_start(team, &call, &request);
      if (status == TORII_OK) status = torii_wait(&request);
      const bool is_own = torii_team_rank(team) == 1;
      EXPECT_EQ(status, is_own || is_persistent ? TORII_ABORTED : TORII_MISMATCH) << torii_last_error();
      EXPECT_NE(std::string(torii_last_error()).find("could not write leaf 4: it returned 7"), std::string::npos)
          << torii_last_error();
      EXPECT_EQ(torii_request_free(&request), TORII_OK);
    });
  }
}

/// Also when equal calls without a leaf ran before.
TEST(LeavesRefusals, OfALeafWithoutLeavesAreNoPlainCalls) {
  run_as_threads(team_of(2), [&](torii_context*, torii_team* team) {
    std::vector<float> input(4);
    std::vector<float> result(4);
    torii_call call = make_call(TORII_ALLREDUCE, input.data(), result.data(), 4, TORII_F32);
    for (int i = 0; i < 5; ++i) ASSERT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
    call.leaf = [](std::size_t, void*, void*) { return 0; };
    EXPECT_EQ(refusal_of(team, call), "leaf is set, but leaves is NULL; torii_leaves_create makes it");
  });
}

}  // namespace
}  // namespace torii::tests
