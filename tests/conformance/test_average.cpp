// SPDX-License-Identifier: Apache-2.0
// Averages: the sum of the same call with op sum, divided once; of small floats at `canonical` and with WIRE=f32 the
// sum in float, rounded after the division. In all forms of calls, in place or not, on 1 to 8 ranks.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "reduce_kernels/float16.hpp"
#include "reduce_kernels/float8.hpp"
#include "tests/conformance/combine.hpp"
#include "tools/operands.hpp"

namespace torii::tests {
namespace {

template <typename T>
void divide_all(std::vector<std::byte>& sums, std::size_t ranks) {
  using Wide = std::conditional_t<std::is_floating_point_v<T>, T,
                                  std::conditional_t<std::is_signed_v<T>, long long, unsigned long long>>;
  for (std::size_t at = 0; at < sums.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, &sums[at], sizeof(T));
    value = static_cast<T>(static_cast<Wide>(value) / static_cast<Wide>(ranks));
    std::memcpy(&sums[at], &value, sizeof(T));
  }
}

template <typename Bits, typename Widen, typename Narrow>
void divide_small(std::vector<std::byte>& sums, std::size_t ranks, Widen widen, Narrow narrow) {
  for (std::size_t at = 0; at < sums.size(); at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, &sums[at], sizeof(Bits));
    bits = narrow(widen(bits) / static_cast<float>(ranks));
    std::memcpy(&sums[at], &bits, sizeof(Bits));
  }
}

void divide(torii_type type, std::vector<std::byte>& sums, std::size_t ranks) {
  switch (type) {
    case TORII_I8:
      return divide_all<std::int8_t>(sums, ranks);
    case TORII_U16:
      return divide_all<std::uint16_t>(sums, ranks);
    case TORII_I32:
      return divide_all<std::int32_t>(sums, ranks);
    case TORII_U64:
      return divide_all<std::uint64_t>(sums, ranks);
    case TORII_F64:
    case TORII_CF64:
      return divide_all<double>(sums, ranks);
    case TORII_F32:
    case TORII_CF32:
      return divide_all<float>(sums, ranks);
    case TORII_F16:
      return divide_small<std::uint16_t>(sums, ranks, kernels::f16_to_f32, kernels::f32_to_f16);
    case TORII_BF16:
      return divide_small<std::uint16_t>(sums, ranks, kernels::bf16_to_f32, kernels::f32_to_bf16);
    case TORII_FLOAT8_E4M3:
      return divide_small<std::uint8_t>(sums, ranks, kernels::e4m3_to_f32, kernels::f32_to_e4m3);
    default:
      return divide_small<std::uint8_t>(sums, ranks, kernels::e5m2_to_f32, kernels::f32_to_e5m2);
  }
}

constexpr torii_type kTypes[] = {TORII_I8,  TORII_U16,  TORII_I32,  TORII_U64,         TORII_F32,         TORII_F64,
                                 TORII_F16, TORII_BF16, TORII_CF32, TORII_FLOAT8_E4M3, TORII_FLOAT8_E5M2, TORII_CF64};

void check_all(torii_team* team, bool sums_are_rounded, const std::string& where) {
  const int ranks = torii_team_ranks(team);
  // On some number of ranks each length meets both places and at least two forms.
  constexpr std::size_t kCounts[] = {27, 1, 4099};
  const Matrix matrix = {.collectives = {TORII_ALLREDUCE, TORII_REDUCE, TORII_REDUCE_SCATTER},
                         .types = {std::begin(kTypes), std::end(kTypes)},
                         .ops = {TORII_AVG},
                         .counts = {kCounts[(ranks + ranks / 3) % 3]}};
  for (const Cell& cell : cells_of(matrix, ranks)) {
    CellCall average(team, cell);
    ASSERT_EQ(run_as(cell.form, team, average.call(), [&] { average.fill(); }), TORII_OK) << torii_last_error();
    average.expect_right(where);
    CellCall sum(team, {cell.collective, cell.type, TORII_SUM, cell.count, cell.root});
    ASSERT_EQ(torii_run(team, &sum.call()), TORII_OK) << torii_last_error();
    // A sum that was rounded before the division may give another result than one that was not.
    if (is_small_float(static_cast<Type>(cell.type)) && !sums_are_rounded) continue;
    std::vector<std::byte> divided(sum.result().begin(), sum.result().end());
    divide(cell.type, divided, static_cast<std::size_t>(ranks));
    EXPECT_TRUE(same_bytes(divided, average.result())) << text_of(cell) << ", " << where;
  }
}

class Averages : public ::testing::TestWithParam<TeamRow> {};

TEST_P(Averages, AreTheSumDividedOnce) {
  const TeamRow& row = GetParam();
  const bool are_rounded = std::string(row.wire) == "type" && std::string(row.determinism) == "run";
  on_teams_of(row, [&](torii_team* team) {
    check_all(team, are_rounded, std::string(row.algorithm) + " on " + std::to_string(torii_team_ranks(team)));
  });
}

INSTANTIATE_TEST_SUITE_P(Rows, Averages,
                         ::testing::Values(TeamRow{"auto", "type", "run"}, TeamRow{"auto", "f32", "run"},
                                           TeamRow{"auto", "type", "canonical"}, TeamRow{"ring", "type", "run"}));

/// Three times the largest number of each small float: its sum overflows where it is rounded, its average does not.
TEST(Averages, OfSmallFloatsAreRoundedOnceWhereSumsTravelAsFloat) {
  const std::vector<std::pair<torii_type, std::vector<std::uint8_t>>> largest = {
      {TORII_FLOAT8_E4M3, {0x7e}}, {TORII_FLOAT8_E5M2, {0x7b}}, {TORII_F16, {0xff, 0x7b}}};
  ThreadTeam options;
  options.ranks = 3;
  options.determinism = "canonical";
  options.settings = "ARENA=1G\nTIMEOUT=20";
  run_as_threads(options, [&](torii_context*, torii_team* team) {
    for (const auto& [type, bytes] : largest) {
      for (const torii_op op : {TORII_AVG, TORII_SUM}) {
        std::vector<std::uint8_t> result(bytes.size());
        ASSERT_EQ(torii_allreduce(team, bytes.data(), result.data(), 1, type, op), TORII_OK) << torii_last_error();
        EXPECT_EQ(result == bytes, op == TORII_AVG) << torii_type_name(type) << " " << torii_op_name(op);
      }
    }
  });
}

TEST(Averages, AreRefusedWithTheReasonWhereTheyMakeNoSense) {
  ThreadTeam options;
  options.settings = "ARENA=1G\nTIMEOUT=20";
  run_as_threads(options, [&](torii_context*, torii_team* team) {
    const auto refusal = [&](torii_collective collective, torii_type type) {
      std::vector<std::byte> input(64), result(64);
      const torii_call call = make_call(collective, input.data(), result.data(), 1, type, TORII_AVG);
      EXPECT_EQ(torii_run(team, &call), TORII_INVALID_ARGUMENT);
      return std::string(torii_last_error());
    };
    EXPECT_EQ(refusal(TORII_ALLREDUCE, TORII_BOOL).find("op avg is not defined for type bool: the average of"), 0U);
    EXPECT_EQ(refusal(TORII_REDUCE, TORII_F32_I32).find("op avg is not defined for type f32_i32: pairs"), 0U);
    EXPECT_EQ(refusal(TORII_SCAN, TORII_F32).find("op avg is not defined for scan: every rank combines"), 0U);
    EXPECT_EQ(refusal(TORII_EXSCAN, TORII_I32).find("op avg is not defined for exscan: every rank combines"), 0U);
    const float one = 1;
    float average = 0;
    ASSERT_EQ(torii_allreduce(team, &one, &average, 1, TORII_F32, TORII_AVG), TORII_OK) << torii_last_error();
    EXPECT_EQ(average, 1) << "the team goes on after calls that all ranks refuse";
  });
}

TEST(Averages, AndSumsAreCallsThatDiffer) {
  ThreadTeam options;
  options.settings = "ARENA=1G\nTIMEOUT=20";
  run_as_threads(options, [&](torii_context*, torii_team* team) {
    const float one = 1;
    float result = 0;
    const torii_op op = torii_team_rank(team) == 0 ? TORII_AVG : TORII_SUM;
    EXPECT_EQ(torii_allreduce(team, &one, &result, 1, TORII_F32, op), TORII_MISMATCH) << torii_last_error();
    const std::string text = torii_last_error();
    EXPECT_TRUE(text.find("op avg") != std::string::npos && text.find("op sum") != std::string::npos) << text;
  });
}

}  // namespace
}  // namespace torii::tests
