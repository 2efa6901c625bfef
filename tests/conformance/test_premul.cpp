// SPDX-License-Identifier: Apache-2.0
// Sums of inputs that are multiplied before: the bits of a sum of the products, in all collectives that combine, in all
// forms of calls, in place or not, on 1 to 8 ranks.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "reduce_kernels/kernels.hpp"
#include "tests/conformance/thread_team.hpp"
#include "tests/support/operands.hpp"

namespace torii::tests {
namespace {

constexpr torii_collective kCombining[] = {TORII_REDUCE, TORII_ALLREDUCE, TORII_REDUCE_SCATTER, TORII_SCAN,
                                           TORII_EXSCAN};
constexpr torii_type kTypes[] = {TORII_I8,  TORII_U16,  TORII_I64,  TORII_F16,         TORII_BF16,       TORII_F32,
                                 TORII_F64, TORII_CF32, TORII_CF64, TORII_FLOAT8_E4M3, TORII_FLOAT8_E5M2};

void fill(torii_type type, int seed, int rank, std::size_t first, std::size_t count, void* out) {
  const auto from = static_cast<std::uint64_t>(seed);
  if (type == TORII_CF32) return fill_operand(Type::f32, from, rank, 2 * first, 2 * count, out);
  if (type == TORII_CF64) return fill_operand(Type::f64, from, rank, 2 * first, 2 * count, out);
  fill_operand(static_cast<Type>(type), from, rank, first, count, out);
}

std::vector<std::byte> factor_of(torii_type type, int rank) {
  std::vector<std::byte> factor(torii_type_bytes(type));
  fill(type, 9, rank, 0, 1, factor.data());
  return factor;
}

/// The products of a rank, one element at a time by the plain reference.
void fill_products(int rank, std::size_t first, std::size_t count, void* out, void* data) {
  const auto type = *static_cast<const torii_type*>(data);
  const std::size_t bytes = torii_type_bytes(type);
  const std::vector<std::byte> factor = factor_of(type, rank);
  fill(type, 5, rank, first, count, out);
  const kernels::FoldFn multiply = kernels::find(Op::prod, static_cast<Type>(type), kernels::Isa::reference);
  for (std::size_t i = 0; i < count; ++i) {
    void* const element = static_cast<std::byte*>(out) + i * bytes;
    const void* const sources[] = {element, factor.data()};
    multiply({.sources = sources, .source_count = 2, .targets = &element, .target_count = 1}, 1);
  }
}

void run_as(int form, torii_team* team, const torii_call& call) {
  torii_request* request = nullptr;
  if (form == 0) {
    EXPECT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
  } else if (form == 1) {
    EXPECT_EQ(torii_start(team, &call, &request), TORII_OK) << torii_last_error();
    EXPECT_EQ(torii_wait(&request), TORII_OK) << torii_last_error();
  } else {
    EXPECT_EQ(torii_prepare(team, &call, &request), TORII_OK) << torii_last_error();
    EXPECT_EQ(torii_restart(request), TORII_OK) << torii_last_error();
    EXPECT_EQ(torii_wait(&request), TORII_OK) << torii_last_error();
    EXPECT_EQ(torii_request_free(&request), TORII_OK) << torii_last_error();
  }
}

/// One call with factors against torii_expect of the products.
void check(torii_team* team, torii_collective collective, torii_type type, std::size_t count, int turn) {
  const int rank = torii_team_rank(team);
  const std::size_t bytes = torii_type_bytes(type);
  const bool is_scattered = collective == TORII_REDUCE_SCATTER;
  const std::size_t inputs = is_scattered ? count * static_cast<std::size_t>(torii_team_ranks(team)) : count;
  std::vector<std::byte> input(inputs * bytes);
  std::vector<std::byte> separate(count * bytes);
  fill(type, 5, rank, 0, inputs, input.data());
  const std::vector<std::byte> before = input;
  const bool in_place = turn / 3 % 2 == 1;
  std::byte* result = separate.data();
  if (in_place) result = input.data() + (is_scattered ? static_cast<std::size_t>(rank) * count * bytes : 0);
  std::vector<std::byte> factor = factor_of(type, rank);
  torii_call call = make_call(collective, input.data(), result, count, type, TORII_PREMUL_SUM);
  call.factor = factor.data();
  run_as(turn % 3, team, call);
  EXPECT_TRUE(in_place || same_bytes(before, input)) << "the input was written";
  if ((collective == TORII_EXSCAN && rank == 0) || (collective == TORII_REDUCE && rank != 0)) return;
  torii_type of = type;
  std::vector<std::byte> expected(count * bytes);
  ASSERT_EQ(torii_expect(team, &call, 0, count, fill_products, &of, expected.data()), TORII_OK) << torii_last_error();
  EXPECT_TRUE(same_bytes(expected, {result, count * bytes}))
      << torii_collective_name(collective) << " " << torii_type_name(type) << " of " << count << " on rank " << rank
      << ", in place " << in_place << ", form " << turn % 3;
}

struct Row {
  const char* algorithm;
  const char* wire;
  const char* determinism;
};

class Products : public ::testing::TestWithParam<Row> {};

TEST_P(Products, AreSummedAsInputsAre) {
  const Row& row = GetParam();
  for (int ranks = 1; ranks <= 8; ++ranks) {
    ThreadTeam options;
    options.ranks = ranks;
    options.algorithm = row.algorithm;
    options.determinism = row.determinism;
    options.segment_bytes = 1024;
    options.settings = std::string("ARENA=1G\nTIMEOUT=20\nWIRE=") + row.wire;
    run_as_threads(options, [&](torii_context*, torii_team* team) {
      int turn = 0;
      for (const torii_collective collective : kCombining) {
        for (const torii_type type : kTypes) {
          for (const std::size_t count : {std::size_t{1}, std::size_t{27}, std::size_t{4099}}) {
            check(team, collective, type, count, turn++);
          }
        }
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, Products,
                         ::testing::Values(Row{"auto", "type", "run"}, Row{"auto", "f32", "run"},
                                           Row{"auto", "type", "canonical"}, Row{"ring", "type", "run"}));

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
