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
#include "tests/conformance/thread_team.hpp"
#include "tests/support/operands.hpp"

namespace torii::tests {
namespace {

void fill(int rank, std::size_t first, std::size_t count, void* out, void* data) {
  const auto type = *static_cast<const torii_type*>(data);
  if (type == TORII_CF32) return fill_operand(Type::f32, 3, rank, 2 * first, 2 * count, out);
  if (type == TORII_CF64) return fill_operand(Type::f64, 3, rank, 2 * first, 2 * count, out);
  fill_operand(static_cast<Type>(type), 3, rank, first, count, out);
}

constexpr torii_collective kAveraging[] = {TORII_ALLREDUCE, TORII_REDUCE, TORII_REDUCE_SCATTER};

struct Way {
  int form = 0;  ///< blocking, started, prepared and started twice
  bool in_place = false;
};

/// One rank's part in a call.
struct Case {
  torii_team* team;
  torii_collective collective;
  torii_type type;
  std::size_t count;

  std::size_t rank() const { return static_cast<std::size_t>(torii_team_rank(team)); }
  std::size_t ranks() const { return static_cast<std::size_t>(torii_team_ranks(team)); }
  bool is_scattered() const { return collective == TORII_REDUCE_SCATTER; }
  bool has_result() const { return collective != TORII_REDUCE || rank() == 0; }
};

/// The result of the call; `expected` becomes what torii_expect gives.
std::vector<std::byte> result_of(const Case& c, torii_type type, torii_op op, Way way,
                                 std::vector<std::byte>* expected) {
  const std::size_t bytes = torii_type_bytes(type);
  const std::size_t inputs = c.is_scattered() ? c.count * c.ranks() : c.count;
  std::vector<std::byte> input(inputs * bytes);
  std::vector<std::byte> separate(c.count * bytes);
  std::byte* result = separate.data();
  if (way.in_place) result = input.data() + (c.is_scattered() ? c.rank() * c.count * bytes : 0);
  const torii_call call = make_call(c.collective, input.data(), result, c.count, type, op);
  torii_type fill_type = type;
  const auto refill = [&] { fill(torii_team_rank(c.team), 0, inputs, input.data(), &fill_type); };
  refill();
  torii_request* request = nullptr;
  if (way.form == 0) {
    EXPECT_EQ(torii_run(c.team, &call), TORII_OK) << torii_last_error();
  } else if (way.form == 1) {
    EXPECT_EQ(torii_start(c.team, &call, &request), TORII_OK) << torii_last_error();
    EXPECT_EQ(torii_wait(&request), TORII_OK) << torii_last_error();
  } else {
    EXPECT_EQ(torii_prepare(c.team, &call, &request), TORII_OK) << torii_last_error();
    for (int start = 0; start < 2; ++start) {
      refill();
      EXPECT_EQ(torii_restart(request), TORII_OK) << torii_last_error();
      EXPECT_EQ(torii_wait(&request), TORII_OK) << torii_last_error();
    }
    EXPECT_EQ(torii_request_free(&request), TORII_OK) << torii_last_error();
  }
  if (expected != nullptr && c.has_result()) {
    expected->resize(c.count * bytes);
    EXPECT_EQ(torii_expect(c.team, &call, 0, c.count, fill, &fill_type, expected->data()), TORII_OK)
        << torii_last_error();
  }
  return {result, result + c.count * bytes};
}

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
  int turn = 0;
  for (const torii_collective collective : kAveraging) {
    for (const torii_type type : kTypes) {
      // Each form meets every count and both places, on some number of ranks.
      constexpr std::size_t kCounts[] = {1, 27, 4099};
      const std::size_t count = kCounts[static_cast<std::size_t>(turn + torii_team_ranks(team)) % 3];
      const Case c = {team, collective, type, count};
      const Way way = {turn % 3, turn / 3 % 2 == 1};
      ++turn;
      std::vector<std::byte> expected;
      const std::vector<std::byte> average = result_of(c, type, TORII_AVG, way, &expected);
      std::vector<std::byte> sum = result_of(c, type, TORII_SUM, {}, nullptr);
      if (!c.has_result()) continue;
      EXPECT_TRUE(same_bytes(expected, average)) << where << " " << torii_type_name(type) << " " << count;
      // A sum that was rounded before the division may give another result than one that was not.
      if (is_small_float(static_cast<Type>(type)) && !sums_are_rounded) continue;
      divide(type, sum, c.ranks());
      EXPECT_TRUE(same_bytes(sum, average)) << where << " " << torii_type_name(type) << " " << count;
    }
  }
}

struct Row {
  const char* algorithm;
  const char* wire;
  const char* determinism;
};

class Averages : public ::testing::TestWithParam<Row> {};

TEST_P(Averages, AreTheSumDividedOnce) {
  const Row& row = GetParam();
  for (int ranks = 1; ranks <= 8; ++ranks) {
    ThreadTeam options;
    options.ranks = ranks;
    options.algorithm = row.algorithm;
    options.determinism = row.determinism;
    options.segment_bytes = 1024;
    options.settings = std::string("ARENA=1G\nTIMEOUT=20\nWIRE=") + row.wire;
    const bool are_rounded = std::string(row.wire) == "type" && std::string(row.determinism) == "run";
    run_as_threads(options, [&](torii_context*, torii_team* team) {
      check_all(team, are_rounded, std::string(row.algorithm) + " " + std::to_string(torii_team_ranks(team)));
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, Averages,
                         ::testing::Values(Row{"auto", "type", "run"}, Row{"auto", "f32", "run"},
                                           Row{"auto", "type", "canonical"}, Row{"ring", "type", "run"}));

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
