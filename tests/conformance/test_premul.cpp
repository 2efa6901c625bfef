// SPDX-License-Identifier: Apache-2.0
// Sums of inputs that are multiplied before: the bits of a sum of the products, in all collectives that combine, in all
// forms of calls, in place or not, on 1 to 8 ranks.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reduce_kernels/kernels.hpp"
#include "tests/conformance/combine.hpp"
#include "tools/operands.hpp"

namespace torii::tests {
namespace {

constexpr torii_type kTypes[] = {TORII_I8,  TORII_U16,  TORII_I64,  TORII_F16,         TORII_BF16,       TORII_F32,
                                 TORII_F64, TORII_CF32, TORII_CF64, TORII_FLOAT8_E4M3, TORII_FLOAT8_E5M2};

std::vector<std::byte> factor_of(torii_type type, int rank) {
  std::vector<std::byte> factor(torii_type_bytes(type));
  fill_operand(static_cast<Type>(type), 9, rank, 0, 1, factor.data());
  return factor;
}

/// The products of a rank, one element at a time by the plain reference.
void fill_products(int rank, std::size_t first, std::size_t count, void* out, void* data) {
  const auto type = *static_cast<const torii_type*>(data);
  const std::size_t bytes = torii_type_bytes(type);
  const std::vector<std::byte> factor = factor_of(type, rank);
  fill_operand(static_cast<Type>(type), 5, rank, first, count, out);
  const kernels::FoldFn multiply = kernels::find(Op::prod, static_cast<Type>(type), kernels::Isa::reference);
  for (std::size_t i = 0; i < count; ++i) {
    void* const element = static_cast<std::byte*>(out) + i * bytes;
    const void* const sources[] = {element, factor.data()};
    multiply({.sources = sources, .source_count = 2, .targets = &element, .target_count = 1}, 1);
  }
}

class Products : public ::testing::TestWithParam<TeamRow> {};

TEST_P(Products, AreSummedAsInputsAre) {
  const Matrix matrix = {.collectives = kCombining,
                         .types = {std::begin(kTypes), std::end(kTypes)},
                         .ops = {TORII_PREMUL_SUM},
                         .counts = {1, 27, 4099}};
  on_teams_of(GetParam(), [&](torii_team* team) {
    for (Cell cell : cells_of(matrix, torii_team_ranks(team))) {
      const std::vector<std::byte> factor = factor_of(cell.type, torii_team_rank(team));
      const Inputs inputs = {.seed = 5, .combined = fill_products, .data = &cell.type, .factor = factor.data()};
      ASSERT_EQ(run_and_expect(team, cell, inputs), TORII_OK) << torii_last_error();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Rows, Products,
                         ::testing::Values(TeamRow{"auto", "type", "run"}, TeamRow{"auto", "f32", "run"},
                                           TeamRow{"auto", "type", "canonical"}, TeamRow{"ring", "type", "run"}));

TEST(Products, AreRefusedWithTheReasonWhereTheyMakeNoSense) {
  ThreadTeam options;
  options.settings = "ARENA=1G\nTIMEOUT=20";
  run_as_threads(options, [&](torii_context*, torii_team* team) {
    std::vector<std::byte> input(64), result(64), factor(16);
    const auto refusal = [&](torii_type type, const void* by) {
      torii_call call = make_call(TORII_ALLREDUCE, input.data(), result.data(), 1, type, TORII_PREMUL_SUM);
      call.factor = by;
      EXPECT_EQ(torii_run(team, &call), TORII_INVALID_ARGUMENT);
      return std::string(torii_last_error());
    };
    EXPECT_EQ(refusal(TORII_BOOL, factor.data()).find("op premul_sum is not defined for type bool: truth values"), 0U);
    EXPECT_EQ(refusal(TORII_I16_I32, factor.data()).find("op premul_sum is not defined for type i16_i32: pairs"), 0U);
    EXPECT_EQ(refusal(TORII_F32, nullptr),
              "op is premul_sum, but factor is NULL; it must be one element of the call's type");
    EXPECT_EQ(torii_allreduce(team, input.data(), result.data(), 1, TORII_F32, TORII_PREMUL_SUM),
              TORII_INVALID_ARGUMENT);
    EXPECT_NE(std::string(torii_last_error()).find("torii_call.factor"), std::string::npos) << torii_last_error();
    const std::vector<std::size_t> counts(2, 1);
    EXPECT_EQ(torii_reduce_scatterv(team, input.data(), result.data(), counts.data(), TORII_F32, TORII_PREMUL_SUM),
              TORII_INVALID_ARGUMENT);
    const float one = 1;
    float sum = 0;
    ASSERT_EQ(torii_allreduce(team, &one, &sum, 1, TORII_F32, TORII_SUM), TORII_OK) << torii_last_error();
    EXPECT_EQ(sum, 2) << "the team goes on after calls that all ranks refuse";
  });
}

}  // namespace
}  // namespace torii::tests
