// SPDX-License-Identifier: Apache-2.0
// The tune table of one team: its calls obey it, other teams do not see it, ranks must agree on it, bad ones are
// refused.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

std::string table(const std::string& algorithm, int segment_bytes) {
  return R"({"version": 1, "rows": [{"collective": "allreduce", "ranks": [1, 64], "bytes_max": null, "algorithm": ")" +
         algorithm + R"(", "segment": )" + std::to_string(segment_bytes) + R"(, "slots": 4, "window": 2}]})";
}

torii_status create(torii_context* context, const std::string& text, torii_team** team) {
  torii_team_options options = {};
  options.size = sizeof(options);
  options.tune_table = text.c_str();
  return torii_team_create(context, &options, team);
}

torii_choice choice_of(torii_team* team, const torii_call& call) {
  torii_choice choice = {};
  choice.size = sizeof(choice);
  EXPECT_EQ(torii_choose(team, &call, &choice), TORII_OK) << torii_last_error();
  return choice;
}

TEST(TeamTables, EachTeamObeysItsOwn) {
  ThreadTeam options;
  options.ranks = 3;
  options.settings = "ARENA=1G\nTIMEOUT=10";
  run_as_threads(options, [](torii_context* context, torii_team* plain) {
    std::vector<float> input(10000, 1), result(10000);
    const torii_call call = make_call(TORII_ALLREDUCE, input.data(), result.data(), input.size(), TORII_F32);
    const torii_choice before = choice_of(plain, call);
    torii_team *ring = nullptr, *binomial = nullptr, *part = nullptr;
    ASSERT_EQ(create(context, table("ring", 4096), &ring), TORII_OK) << torii_last_error();
    ASSERT_EQ(create(context, table("binomial", 8192), &binomial), TORII_OK) << torii_last_error();
    ASSERT_EQ(torii_team_split(ring, 0, 0, nullptr, &part), TORII_OK) << torii_last_error();
    EXPECT_STREQ(choice_of(ring, call).algorithm, "ring");
    EXPECT_EQ(choice_of(ring, call).segment_bytes, 4096u);
    EXPECT_STREQ(choice_of(binomial, call).algorithm, "binomial");
    EXPECT_EQ(choice_of(binomial, call).segment_bytes, 8192u);
    for (torii_team* other : {plain, part}) {
      EXPECT_STREQ(choice_of(other, call).algorithm, before.algorithm);
      EXPECT_EQ(choice_of(other, call).segment_bytes, before.segment_bytes);
    }
    for (torii_team* team : {ring, binomial, part, plain}) {
      EXPECT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
      EXPECT_EQ(result, std::vector<float>(10000, 3));
    }
    for (torii_team* team : {part, binomial, ring}) EXPECT_EQ(torii_team_destroy(team), TORII_OK);
  });
}

/// Tori have rows of their own in the built-in table; so what runs tells on what a part stands.
TEST(Parts, OfATorusStandOnItsRowsAndColumns) {
  ThreadTeam options;
  options.ranks = 6;
  options.topology = "torus:3x2";
  options.settings = "ARENA=1G\nTIMEOUT=20";
  run_as_threads(options, [](torii_context*, torii_team* whole) {
    const int rank = torii_team_rank(whole);
    constexpr std::size_t kCount = 100'000;
    std::vector<float> input(kCount, 1), result(kCount);
    const torii_call call = make_call(TORII_ALLREDUCE, input.data(), result.data(), kCount, TORII_F32);
    const std::string on_torus = choice_of(whole, call).algorithm;
    EXPECT_EQ(on_torus, "bucket");
    struct Split {
      int color;
      int key;
      bool is_torus;
      float members;
    };
    const Split splits[] = {{rank / 3, 0, true, 3},
                            {rank % 3, 0, true, 2},
                            {rank / 3, -rank, true, 3},
                            {0, rank, true, 6},
                            {0, rank % 3, true, 6},
                            {0, rank == 2 || rank == 3 ? 5 - rank : rank, false, 6},
                            {rank == 0 || rank == 4 || rank == 5, 0, false, 3}};
    for (const Split& split : splits) {
      torii_team* part = nullptr;
      ASSERT_EQ(torii_team_split(whole, split.color, split.key, nullptr, &part), TORII_OK) << torii_last_error();
      EXPECT_EQ(choice_of(part, call).algorithm == on_torus, split.is_torus) << split.color << ' ' << split.key;
      EXPECT_EQ(torii_run(part, &call), TORII_OK) << torii_last_error();
      EXPECT_EQ(result, std::vector<float>(kCount, split.members));
      EXPECT_EQ(torii_team_destroy(part), TORII_OK);
    }
  });
}

torii_status create_mapped(torii_context* context, const char* map, torii_team** team) {
  torii_team_options options = {};
  options.size = sizeof(options);
  options.topology = "torus:3x2";
  options.rank_map = map;
  return torii_team_create(context, &options, team);
}

/// Columns of a torus of 3x2 under a map are pairs that its rows in rank order are not.
TEST(RankMaps, HoldForATeamAndItsParts) {
  ThreadTeam options;
  options.ranks = 6;
  options.settings = "ARENA=1G\nTIMEOUT=20\nTOPOLOGY=torus:3x2\nRANK_MAP=list:5,0,3,1,4,2";
  run_as_threads(options, [](torii_context* context, torii_team* whole) {
    const int rank = torii_team_rank(whole);
    constexpr std::size_t kCount = 100'000;
    std::vector<float> input(kCount, static_cast<float>(rank)), result(kCount);
    const torii_call call = make_call(TORII_ALLREDUCE, input.data(), result.data(), kCount, TORII_F32);
    const auto runs_bucket = [&](torii_team* team, float sum) {
      EXPECT_STREQ(choice_of(team, call).algorithm, "bucket");
      EXPECT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
      EXPECT_EQ(result, std::vector<float>(kCount, sum));
    };
    runs_bucket(whole, 15);
    torii_team* row = nullptr;  // ranks 1, 3, 5 at y = 0; 2, 4, 0 at y = 1
    ASSERT_EQ(torii_team_split(whole, rank % 2, 0, nullptr, &row), TORII_OK) << torii_last_error();
    runs_bucket(row, rank % 2 == 1 ? 9 : 6);
    EXPECT_EQ(torii_team_destroy(row), TORII_OK);
    std::vector<float> gathered(6);
    EXPECT_EQ(torii_all_gather(whole, input.data(), gathered.data(), 1, TORII_F32), TORII_OK);
    EXPECT_EQ(gathered, (std::vector<float>{0, 1, 2, 3, 4, 5})) << "blocks stand in the order of ranks";
    torii_team* own = nullptr;
    ASSERT_EQ(create_mapped(context, "0 2 1\n1 1 1\n2 0 1\n3 0 0\n4 1 0\n5 2 0\n", &own), TORII_OK);
    runs_bucket(own, 15);
    EXPECT_EQ(torii_team_destroy(own), TORII_OK);
  });
}

TEST(RankMaps, BadOnesAreNamedAndRanksMustAgree) {
  ThreadTeam options;
  options.ranks = 6;
  options.settings = "ARENA=1G\nTIMEOUT=20";
  run_as_threads(options, [](torii_context* context, torii_team* whole) {
    torii_team* team = nullptr;
    EXPECT_EQ(create_mapped(context, "list:0,1,2,3,4,4", &team), TORII_INVALID_ARGUMENT);
    EXPECT_NE(std::string(torii_last_error()).find("entry 5 is 4, the place of rank 4 already"), std::string::npos);
    EXPECT_EQ(create_mapped(context, torii_team_rank(whole) == 2 ? "list:0,1,2,3,5,4" : "list:1,0,2,3,4,5", &team),
              TORII_MISMATCH);
    EXPECT_NE(std::string(torii_last_error()).find("rank 2 differs from rank 0: 'team rank_map digest="),
              std::string::npos)
        << torii_last_error();
    EXPECT_EQ(team, nullptr);
  });
}

TEST(TeamTables, BadOnesAreNamed) {
  struct Bad {
    std::string text;
    const char* message;
  };
  const Bad all[] = {
      {"rows", "the team's tune_table: it is not JSON"},
      {R"({"version": 2, "rows": []})", "the team's tune_table: \"version\" is 2; this library reads 1"},
      {table("quantum", 64), "the team's tune_table, row 0: \"algorithm\" is \"quantum\""},
      {table("ring", 100), "the team's tune_table, row 0: \"segment\" is 100; it must be a multiple of 64"},
  };
  ThreadTeam options;
  options.settings = "ARENA=1G\nTIMEOUT=10";
  run_as_threads(options, [&](torii_context* context, torii_team*) {
    for (const Bad& bad : all) {
      torii_team* team = nullptr;
      EXPECT_EQ(create(context, bad.text, &team), TORII_INVALID_ARGUMENT);
      EXPECT_NE(std::string(torii_last_error()).find(bad.message), std::string::npos) << torii_last_error();
      EXPECT_EQ(team, nullptr);
    }
  });
}

TEST(TeamTables, RanksMustAgree) {
  ThreadTeam options;
  options.settings = "ARENA=1G\nTIMEOUT=10";
  run_as_threads(options, [&](torii_context* context, torii_team* plain) {
    torii_team* team = nullptr;
    EXPECT_EQ(create(context, table("ring", torii_team_rank(plain) == 0 ? 4096 : 8192), &team), TORII_MISMATCH);
    EXPECT_NE(std::string(torii_last_error()).find("team tune_table digest="), std::string::npos) << torii_last_error();
  });
}

}  // namespace
}  // namespace torii::tests
