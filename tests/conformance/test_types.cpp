// SPDX-License-Identifier: Apache-2.0
// Every pair of operation and type works or is refused with the reason; truth values and 8-bit floats in all
// collectives that combine, in all forms of calls, in place or not, on 1 to 8 ranks.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/conformance/thread_team.hpp"
#include "tests/support/operands.hpp"

namespace torii::tests {
namespace {

constexpr torii_collective kCombining[] = {TORII_REDUCE, TORII_ALLREDUCE, TORII_REDUCE_SCATTER, TORII_SCAN,
                                           TORII_EXSCAN};

/// Operands without NaNs: numbers for floats, small integers for pairs.
void fill(int rank, std::size_t first, std::size_t count, void* out, void* data) {
  const auto type = *static_cast<const torii_type*>(data);
  if (type == TORII_CF32) return fill_operand(Type::f32, 3, rank, 2 * first, 2 * count, out);
  if (type == TORII_CF64) return fill_operand(Type::f64, 3, rank, 2 * first, 2 * count, out);
  if (type < TORII_I16_I32 || type > TORII_F64_I32) {
    return fill_operand(static_cast<Type>(type), 3, rank, first, count, out);
  }
  const std::size_t bytes = torii_type_bytes(type);
  for (std::size_t i = 0; i < count; ++i) {
    std::memset(static_cast<std::byte*>(out) + i * bytes, static_cast<int>(random_word(3, rank, first + i) % 100),
                bytes);
  }
}

enum class Form { blocking, started, prepared };

torii_status run_as(Form form, torii_team* team, const torii_call& call) {
  if (form == Form::blocking) return torii_run(team, &call);
  torii_request* request = nullptr;
  if (form == Form::started) {
    const torii_status status = torii_start(team, &call, &request);
    return status == TORII_OK ? torii_wait(&request) : status;
  }
  torii_status status = torii_prepare(team, &call, &request);
  if (status != TORII_OK) return status;
  status = torii_restart(request);
  if (status == TORII_OK) status = torii_wait(&request);
  EXPECT_EQ(torii_request_free(&request), TORII_OK) << torii_last_error();
  return status;
}

struct Way {
  Form form = Form::blocking;
  bool in_place = false;
};

/// The status of one call, whose result must be the expected one if it is ok.
torii_status check(torii_team* team, torii_collective collective, torii_type type, torii_op op, std::size_t count,
                   Way way) {
  const int rank = torii_team_rank(team);
  const auto ranks = static_cast<std::size_t>(torii_team_ranks(team));
  const std::size_t bytes = torii_type_bytes(type);
  const bool is_scattered = collective == TORII_REDUCE_SCATTER;
  const std::size_t inputs = is_scattered ? count * ranks : count;
  std::vector<std::byte> input(inputs * bytes);
  fill(rank, 0, inputs, input.data(), &type);
  std::vector<std::byte> separate(count * bytes);
  std::byte* result = separate.data();
  if (way.in_place) result = input.data() + (is_scattered ? count * bytes * static_cast<std::size_t>(rank) : 0);
  const torii_call call = make_call(collective, input.data(), result, count, type, op);
  const torii_status status = run_as(way.form, team, call);
  const bool has_result = collective == TORII_REDUCE ? rank == 0 : collective != TORII_EXSCAN || rank != 0;
  if (status != TORII_OK || !has_result) return status;
  std::vector<std::byte> expected(count * bytes);
  EXPECT_EQ(torii_expect(team, &call, 0, count, fill, &type, expected.data()), TORII_OK) << torii_last_error();
  EXPECT_TRUE(same_bytes(expected, {result, count * bytes}))
      << torii_collective_name(collective) << " " << torii_op_name(op) << " " << torii_type_name(type) << " of "
      << count << " on rank " << rank << " of " << ranks << ", in place " << way.in_place << ", form "
      << static_cast<int>(way.form);
  for (std::size_t i = 0; type == TORII_BOOL && i < count; ++i) EXPECT_LE(std::to_integer<int>(result[i]), 1) << i;
  return status;
}

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
          const torii_status status = check(team, collective, on, of, 5, {});
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

struct Case {
  const char* algorithm;
  const char* settings;
  const char* determinism;
};

class SmallTypes : public ::testing::TestWithParam<Case> {};

TEST_P(SmallTypes, GiveTheExpectedBits) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    ThreadTeam options;
    options.ranks = ranks;
    options.algorithm = GetParam().algorithm;
    options.determinism = GetParam().determinism;
    options.segment_bytes = 1024;
    options.settings = std::string("ARENA=1G\nTIMEOUT=20\nWIRE=") + GetParam().settings;
    run_as_threads(options, [&](torii_context*, torii_team* team) {
      std::size_t turn = 0;
      for (const torii_collective collective : kCombining) {
        const bool is_prefix = collective == TORII_SCAN || collective == TORII_EXSCAN;
        if (std::string(GetParam().algorithm) == "rabenseifner" && is_prefix) continue;
        for (const torii_type type : {TORII_BOOL, TORII_FLOAT8_E4M3, TORII_FLOAT8_E5M2}) {
          for (const torii_op op : {TORII_SUM, TORII_MAX}) {
            for (const std::size_t count : {std::size_t{1}, std::size_t{27}, std::size_t{4099}}) {
              // Each form meets both places, and every count, in some of the many calls.
              const Way way = {static_cast<Form>(turn % 3), turn % 2 == 1};
              ++turn;
              ASSERT_EQ(check(team, collective, type, op, count, way), TORII_OK) << torii_last_error();
            }
          }
        }
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, SmallTypes,
                         ::testing::Values(Case{"auto", "type", "run"}, Case{"auto", "f32", "run"},
                                           Case{"auto", "type", "canonical"}, Case{"node", "f32", "run"},
                                           Case{"ring", "type", "run"}, Case{"ring", "f32", "run"}));

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
