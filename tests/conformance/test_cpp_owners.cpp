// SPDX-License-Identifier: Apache-2.0
// Objects of the C++ interface that own something, when they are assigned, and sizes that no memory has.
#include <gtest/gtest.h>
#include <torii/torii.hpp>

#include <array>
#include <cstdint>
#include <fstream>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/places.hpp"
#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();

cpp::Context make_context() {
  torii_context_options options = {};
  options.size = sizeof(options);
  options.settings = "ARENA=256M";
  return cpp::Context(&options);
}

int mapped_arenas() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("memfd") != std::string::npos ? 1 : 0;
  return count;
}

void expect_sum_of_one(cpp::Team& team) {
  std::vector<float> data = {1, 2, 3};
  ASSERT_EQ(team.allreduce(std::span(data)), TORII_OK) << torii_last_error();
  EXPECT_EQ(data[2], 3.0F);
}

/// The contexts have no owner but their teams.
TEST(CppOwners, AnAssignedTeamTakesItsContextAlong) {
  const int before = mapped_arenas();
  {
    cpp::Team team = make_context().team();
    const int with_one = mapped_arenas();
    for (int round = 0; round < 5; ++round) {
      team = make_context().team();
      EXPECT_EQ(mapped_arenas(), with_one) << "round " << round;
      expect_sum_of_one(team);
    }
    cpp::Team other = make_context().team();
    std::swap(team, other);
    expect_sum_of_one(team);
    expect_sum_of_one(other);
    team = other.split(0, 0);
    expect_sum_of_one(team);
    other = std::move(team);
    expect_sum_of_one(other);
    EXPECT_FALSE(static_cast<bool>(team));  // NOLINT(bugprone-use-after-move): this is what is tested
    cpp::Team& same = other;
    other = std::move(same);
  }
  EXPECT_EQ(mapped_arenas(), before);
}

TEST(CppOwners, MemoryOfNoElementsAndOfTooMany) {
  const cpp::Context context = make_context();
  for (int round = 0; round < 3; ++round) {
    const auto nothing = context.allocate<float>(0);
    EXPECT_TRUE(nothing.span().empty());
    EXPECT_NE(nothing.span().data(), nullptr) << "an empty buffer has an address, too";
  }
  for (const std::size_t count : {kMost, kMost / 2, kMost / 8 + 2, (std::size_t{1} << 61) + 1}) {
    try {
      (void)context.allocate<double>(count);
      ADD_FAILURE() << count;
    } catch (const cpp::Failure& failure) {
      EXPECT_EQ(failure.status(), TORII_NO_RESOURCE) << failure.what();
      EXPECT_NE(std::string(failure.what()).find("bytes"), std::string::npos) << failure.what();
    }
  }
  const auto buffer = context.allocate<double>(100);
  EXPECT_EQ(buffer.span().size(), 100U);
}

template <typename Call>
void expect_text(Call&& call, const std::string& text) {
  EXPECT_EQ(call(), TORII_INVALID_ARGUMENT);
  EXPECT_NE(std::string(torii_last_error()).find(text), std::string::npos) << torii_last_error();
}

/// Products of lengths that wrap would be those of the buffers, or others that are wrong in the text.
TEST(CppOwners, ProductsOfLengthsThatOverflow) {
  cpp::Team team = make_context().team();
  std::array<float, 4> input = {1, 2, 3, 4};
  std::array<float, 4> result = {};
  const std::span<float> out(result);
  const std::string at_least = "needs at least " + std::to_string(kMost);
  expect_text([&] { return team.transpose(input, out, kMost / 4 + 1, 4); }, at_least);
  expect_text([&] { return team.transpose(input, out, kMost / 4 + 2, 4); }, at_least);
  const std::array<std::size_t, 3> extents = {std::size_t{1} << 62, 4, 5};
  expect_text([&] { return team.transpose(input, out, extents, std::array{2, 1, 0}); }, at_least);
  expect_text([&] { return team.transpose(input, out, extents, std::array{0, 2, 1}); }, at_least);
  expect_text([&] { return team.transpose(input, out, std::span<const std::size_t>(), std::span<const int>()); },
              "axes is NULL");
  expect_text(
      [&] {
        return team.transpose(input, out, std::array<std::size_t, 2>{2, 2}, std::array{5, 0});
      },
      "axes[0] is 5");
  cpp::Leaves leaves = team.leaves(4);
  expect_text([&] { return leaves.reduce(input, out, kMost / 4 + 1, 0); }, at_least);
  expect_text([&] { return leaves.reduce(input, out, kMost / 4 + 2, 0); }, at_least);
  expect_text([&] { return leaves.reduce(input, out, 3, 0); }, "the input has 4 elements and needs 12, for 4 leaves");
  expect_sum_of_one(team);
}

/// A type of 16 bytes would be half of it.
TEST(CppOwners, WideIntegersHaveNoType) {
  const std::string compile =
      "echo '#include <torii/torii.hpp>\ntorii_type type = torii::type_of<ELEMENT>();' | "
      "c++ -std=gnu++20 -fsyntax-only -x c++ -I " +
      source_dir() + "/include - 2>&1";
  const auto outcome_of = [&](const std::string& element) {
    std::string command = compile;
    command.replace(command.find("ELEMENT"), 7, element);
    return run({"/bin/sh", "-c", command});
  };
  EXPECT_EQ(outcome_of("std::int64_t").code, 0) << outcome_of("std::int64_t").output;
  const Outcome wide = outcome_of("unsigned __int128");
  EXPECT_NE(wide.code, 0);
  EXPECT_TRUE(holds(wide.output, "torii has no type for this element")) << wide.output;
}

}  // namespace
}  // namespace torii::tests
