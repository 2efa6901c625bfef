// SPDX-License-Identifier: Apache-2.0
// Every pair of operation and type works or is refused with the reason; truth values and 8-bit floats in all
// collectives that combine, in all forms of calls, in place or not, on 1 to 8 ranks.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/conformance/combine.hpp"

namespace torii::tests {
namespace {

TEST(Types, EveryPairOfOperationAndTypeWorksOrIsRefusedWithTheReason) {
  ThreadTeam options;
  options.ranks = 3;
  options.settings = "ARENA=1G\nTIMEOUT=20";
  run_as_threads(options, [&](torii_context*, torii_team* team) {
    int works = 0;
    for (int op = TORII_SUM; op < TORII_USER; ++op) {
      for (int type = TORII_I8; type <= TORII_FLOAT8_E5M2; ++type) {
        const auto of = static_cast<torii_op>(op);
        const auto on = static_cast<torii_type>(type);
        for (const torii_collective collective : kCombining) {
          const torii_status status = run_and_expect(team, {collective, on, of, 5});
          works += status == TORII_OK ? 1 : 0;
          if (status == TORII_OK) continue;
          ASSERT_EQ(status, TORII_INVALID_ARGUMENT) << torii_last_error();
          const std::string start =
              std::string("op ") + torii_op_name(of) + " is not defined for type " + torii_type_name(on) + ": ";
          const std::string text = torii_last_error();
          EXPECT_EQ(text.compare(0, start.size(), start), 0) << text;
          EXPECT_GT(text.size(), start.size() + 20) << text;
        }
      }
    }
    // 8 integers and bool have ten operations, 6 floats four, 2 complex types and 5 pairs two.
    EXPECT_EQ(works, 5 * (9 * 10 + 6 * 4 + 2 * 2 + 5 * 2));
  });
}

class SmallTypes : public ::testing::TestWithParam<TeamRow> {};

TEST_P(SmallTypes, GiveTheExpectedBits) {
  const Matrix matrix = {.collectives = kCombining,
                         .types = {TORII_BOOL, TORII_FLOAT8_E4M3, TORII_FLOAT8_E5M2},
                         .ops = {TORII_SUM, TORII_MAX},
                         .counts = {1, 27, 4099}};
  on_teams_of(GetParam(), [&](torii_team* team) {
    for (const Cell& cell : cells_of(matrix, torii_team_ranks(team))) {
      ASSERT_EQ(run_and_expect(team, cell), TORII_OK) << torii_last_error();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Rows, SmallTypes,
                         ::testing::Values(TeamRow{"auto", "type", "run"}, TeamRow{"auto", "f32", "run"},
                                           TeamRow{"auto", "type", "canonical"}, TeamRow{"node", "f32", "run"},
                                           TeamRow{"ring", "type", "run"}, TeamRow{"ring", "f32", "run"}));

/// The bits of a sum of 8-bit floats at `canonical` are those of an exact sum rounded once, if that is exact in float.
TEST(SmallFloats, TravelAsFloatAtCanonical) {
  for (const torii_type type : {TORII_FLOAT8_E4M3, TORII_FLOAT8_E5M2}) {
    ThreadTeam options;
    options.ranks = 8;
    options.determinism = "canonical";
    options.settings = "ARENA=1G\nTIMEOUT=20";
    run_as_threads(options, [&](torii_context*, torii_team* team) {
      // 1 and seven times half a last place of 1: rounded at every rank, the sum would stay 1.
      const std::uint8_t one = type == TORII_FLOAT8_E4M3 ? 0x38 : 0x3c;
      const std::uint8_t half = type == TORII_FLOAT8_E4M3 ? 0x18 : 0x30;
      const std::vector<std::uint8_t> input(3001, torii_team_rank(team) == 0 ? one : half);
      std::vector<std::uint8_t> result(input.size());
      ASSERT_EQ(torii_allreduce(team, input.data(), result.data(), input.size(), type, TORII_SUM), TORII_OK)
          << torii_last_error();
      // E4M3: 1 + 7/16 is a tie between 1 + 3/8 and 1 + 4/8. E5M2: 1 + 7/8 is one between 1 + 3/4 and 2.
      const std::uint8_t expected = type == TORII_FLOAT8_E4M3 ? 0x3c : 0x40;
      for (const std::uint8_t bits : result) ASSERT_EQ(bits, expected);
    });
  }
}

}  // namespace
}  // namespace torii::tests
