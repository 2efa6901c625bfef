// SPDX-License-Identifier: Apache-2.0
// scan and exscan: functions that do not commute, both levels of determinism, 16-bit floats, all forms of a call, and
// rank 0's result of an exscan.
#include <gtest/gtest.h>

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/conformance/combine.hpp"

namespace torii::tests {
namespace {

constexpr int kPrefixRanks = 5;

/// x -> a x + b. Composition is associative and does not commute. 12 bytes: no power of two.
struct Affine {
  std::uint32_t a = 1;
  std::uint32_t b = 0;
  std::uint32_t uses = 1;  ///< how many were composed
  bool operator==(const Affine&) const = default;
};

Affine operator*(const Affine& left, const Affine& right) {
  return {left.a * right.a, left.a * right.b + left.b, left.uses + right.uses};
}

void compose(const void* left, const void* right, void* out, std::size_t count, void*) {
  for (std::size_t i = 0; i < count; ++i) {
    static_cast<Affine*>(out)[i] = static_cast<const Affine*>(left)[i] * static_cast<const Affine*>(right)[i];
  }
}

Affine operand(int rank, std::size_t index) {
  return {static_cast<std::uint32_t>(2 * index + 3 * static_cast<std::size_t>(rank) + 1),
          static_cast<std::uint32_t>(index * 7 + static_cast<std::size_t>(rank) * 13 + 5), 1};
}

void fill_affine(int rank, std::size_t first, std::size_t count, void* out, void*) {
  for (std::size_t i = 0; i < count; ++i) static_cast<Affine*>(out)[i] = operand(rank, first + i);
}

class Prefix : public ::testing::TestWithParam<std::string> {};

TEST_P(Prefix, KeepsRankOrderForFunctionsThatDoNotCommute) {
  for (const char* determinism : {"run", "canonical"}) {
    if (GetParam() == "ring" && std::string(determinism) == "canonical") continue;
    ThreadTeam options;
    options.ranks = kPrefixRanks;
    options.algorithm = GetParam();
    options.determinism = determinism;
    options.segment_bytes = 1024;
    options.settings = "ARENA=1G\nTIMEOUT=20";
    run_as_threads(options, [&](torii_context*, torii_team* team) {
      const Inputs inputs = {.fill = fill_affine, .user = compose, .user_bytes = sizeof(Affine)};
      for (const torii_collective collective : {TORII_SCAN, TORII_EXSCAN}) {
        for (const std::size_t count : {std::size_t{1}, std::size_t{64}, std::size_t{3000}}) {
          for (const CallForm form : {CallForm::blocking, CallForm::started, CallForm::prepared}) {
            for (const bool in_place : {false, true}) {
              const Cell cell = {collective, TORII_U8, TORII_USER, count, 0, in_place, form};
              ASSERT_EQ(run_and_expect(team, cell, inputs), TORII_OK) << torii_last_error();
            }
          }
        }
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, Prefix, ::testing::Values("node", "ring", "recursive_doubling", "auto"));

std::uint16_t bf16_operand(int rank, std::size_t index) {
  const std::uint32_t mixed =
      (static_cast<std::uint32_t>(index) * 2654435761U) ^ (static_cast<std::uint32_t>(rank) * 40503U);
  return static_cast<std::uint16_t>((mixed & 0x807fU) | (0x3f00U + ((mixed >> 16 & 7U) << 7)));
}

void fill_bf16(int rank, std::size_t first, std::size_t count, void* out, void*) {
  for (std::size_t i = 0; i < count; ++i) static_cast<std::uint16_t*>(out)[i] = bf16_operand(rank, first + i);
}

/// Sums of bf16: partial results travel wide at `canonical`, and there all rows have the same bits.
TEST(PrefixBits, AreTheExpectedOnesForShortFloats) {
  constexpr std::size_t kCount = 2000;
  for (const torii_collective collective : {TORII_SCAN, TORII_EXSCAN}) {
    std::set<std::vector<std::byte>> canonical;  // of the last rank
    std::mutex mutex;
    for (const char* determinism : {"run", "canonical"}) {
      for (const char* algorithm : {"node", "ring", "recursive_doubling"}) {
        const bool is_canonical = std::string(determinism) == "canonical";
        if (is_canonical && std::string(algorithm) == "ring") continue;
        ThreadTeam options;
        options.ranks = kPrefixRanks;
        options.algorithm = algorithm;
        options.determinism = determinism;
        options.segment_bytes = 1024;
        options.settings = "ARENA=1G\nTIMEOUT=20\nWIRE=" + std::string(is_canonical ? "type" : "f32");
        run_as_threads(options, [&](torii_context*, torii_team* team) {
          const int rank = torii_team_rank(team);
          CellCall call(team, {collective, TORII_BF16, TORII_SUM, kCount}, {.fill = fill_bf16});
          ASSERT_EQ(torii_run(team, &call.call()), TORII_OK) << torii_last_error();
          call.expect_right(determinism);
          const std::lock_guard lock(mutex);
          if (is_canonical && rank == kPrefixRanks - 1) canonical.emplace(call.result().begin(), call.result().end());
        });
      }
    }
    EXPECT_EQ(canonical.size(), 1U) << "node and recursive_doubling differ at canonical";
  }
}

TEST(PrefixResult, OfRankZeroMayBeMissingInAnExscan) {
  ThreadTeam options;
  options.ranks = 3;
  options.settings = "ARENA=1G\nTIMEOUT=20";
  run_as_threads(options, [&](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    const std::int64_t input = rank + 1;
    std::int64_t result = -1;
    ASSERT_EQ(torii_exscan(team, &input, rank == 0 ? nullptr : &result, 1, TORII_I64, TORII_SUM), TORII_OK)
        << torii_last_error();
    EXPECT_EQ(result, rank == 0 ? -1 : rank * (rank + 1) / 2);
    ASSERT_EQ(torii_scan(team, &input, &result, 1, TORII_I64, TORII_SUM), TORII_OK) << torii_last_error();
    EXPECT_EQ(result, (rank + 1) * (rank + 2) / 2);
    EXPECT_EQ(torii_scan(team, &input, nullptr, 1, TORII_I64, TORII_SUM), TORII_INVALID_ARGUMENT);
    EXPECT_NE(std::string(torii_last_error()).find("result is NULL"), std::string::npos) << torii_last_error();
    ASSERT_EQ(torii_barrier(team), TORII_OK) << torii_last_error();
  });
}

}  // namespace
}  // namespace torii::tests
