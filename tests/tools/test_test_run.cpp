// SPDX-License-Identifier: Apache-2.0
// The seeds of tests with random input: other ones in each run, one alone, those of the list, and what is no number.
#include "tests/support/test_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/places.hpp"
#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

/// A variable of the environment, which is as before at the end.
class Variable {
 public:
  explicit Variable(const char* name) : name_(name) {
    if (const char* const value = std::getenv(name); value != nullptr) before_ = value;
    unsetenv(name);
  }
  ~Variable() {
    if (before_) {
      set(*before_);
    } else {
      unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  void set(const std::string& value) { setenv(name_, value.c_str(), 1); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

class TestRun : public testing::Test {
 protected:
  Variable run_{"TORII_TEST_RUN"};
  Variable seed_{"TORII_TEST_SEED"};
  Variable full_{"TORII_TEST_FULL"};
  Variable shares_{"TORII_TEST_SHARES"};
};

std::vector<std::uint64_t> values_of(const std::string& test, std::uint64_t count) {
  std::vector<std::uint64_t> values;
  for (const Seed& seed : seeds_of(test, count)) {
    EXPECT_EQ(seed.test, test);
    values.push_back(seed.value);
  }
  return values;
}

/// The text of the exception that `call` throws; empty: there is none.
template <typename Call>
std::string refusal_of(const Call& call) {
  try {
    (void)call();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST_F(TestRun, WithoutANumberOfTheRunSeedsAreTheSameEachTime) {
  EXPECT_EQ(values_of("no_such_test", 3), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(values_of("no_such_test", 3), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(values_of("no_such_test", 0), (std::vector<std::uint64_t>{}));
  EXPECT_FALSE(is_replay());
}

TEST_F(TestRun, EachRunHasSeedsOfItsOwn) {
  std::set<std::uint64_t> all;
  for (const std::uint64_t number : {0U, 1U, 2U, 77U, 78U}) {
    run_.set(std::to_string(number));
    const std::vector<std::uint64_t> seeds = values_of("no_such_test", 5);
    EXPECT_EQ(seeds.size(), 5U);
    EXPECT_EQ(seeds.front(), 1 + 5 * number);
    EXPECT_EQ(seeds.front(), first_seed(5));
    EXPECT_EQ(seeds.back(), seeds.front() + 4) << "they are consecutive";
    all.insert(seeds.begin(), seeds.end());
  }
  EXPECT_EQ(all.size(), 25U);
}

TEST_F(TestRun, OneSeedIsReplayedAlone) {
  run_.set("12");
  seed_.set("18446744073709551615");
  EXPECT_EQ(values_of("no_such_test", 5), (std::vector<std::uint64_t>{18446744073709551615U}));
  EXPECT_EQ(values_of("test_histories/several_nodes/3", 5), (std::vector<std::uint64_t>{18446744073709551615U}));
  EXPECT_TRUE(is_replay());
}

TEST_F(TestRun, EveryRunRepeatsTheListedSeeds) {
  for (const char* const number : {"0", "5"}) {
    run_.set(number);
    const std::vector<std::uint64_t> seeds = values_of("test_histories/several_nodes/3", 2);
    ASSERT_EQ(seeds.size(), 3U);
    EXPECT_EQ(seeds.front(), 3'004'162U);
    EXPECT_EQ(seeds.back(), first_seed(2) + 1);
  }
}

TEST_F(TestRun, LinesOfAListAreANameASeedAndWhatItFound) {
  const std::string list =
      "# a_test 1 a comment\n\na_test 5 what it found\nb_test 6 something else\na_test/part 7\n  a_test 8\n";
  EXPECT_EQ(listed_seeds(list, "a_test"), (std::vector<std::uint64_t>{5, 8}));
  EXPECT_EQ(listed_seeds(list, "a_test/part"), (std::vector<std::uint64_t>{7}));
  EXPECT_EQ(listed_seeds(list, "c_test"), (std::vector<std::uint64_t>{}));
  EXPECT_EQ(listed_seeds("", "a_test"), (std::vector<std::uint64_t>{}));
}

TEST_F(TestRun, WhatIsNoNumberIsRefused) {
  const std::string right = "'; it must be a number from 0 to 18446744073709551615";
  const auto draw = [] { return seeds_of("no_such_test", 1); };
  for (const std::string wrong : {"", "x", "-1", "1x", "1.5", " 1", "18446744073709551616"}) {
    run_.set(wrong);
    EXPECT_EQ(refusal_of(draw), "TORII_TEST_RUN is '" + wrong + right);
  }
  run_.set("0");
  seed_.set("5,6");
  EXPECT_EQ(refusal_of(draw), "TORII_TEST_SEED is '5,6" + right);
  const auto list_with = [](const char* list) { return refusal_of([&] { return listed_seeds(list, "a_test"); }); };
  EXPECT_EQ(list_with("a_test five what it found"), "tests/seeds.txt: the seed of a_test is 'five" + right);
  EXPECT_EQ(list_with("b_test"), "tests/seeds.txt: the seed of b_test is '" + right);
}

TEST_F(TestRun, ASeedSaysHowItIsReplayedAndKept) {
  std::ostringstream text;
  text << Seed{"a_test/part", 42};
  EXPECT_EQ(text.str(),
            "seed 42 of a_test/part: replay it with TORII_TEST_SEED=42, then add the line 'a_test/part 42 WHAT IT "
            "FOUND' to tests/seeds.txt");
}

TEST_F(TestRun, ThreeRunsShareAMatrix) {
  for (std::uint64_t cell = 0; cell < 7; ++cell) {
    int runs = 0;
    for (const char* const run : {"0", "1", "2"}) {
      run_.set(run);
      runs += is_in_share(cell, 3) ? 1 : 0;
    }
    EXPECT_EQ(runs, 1) << cell;
  }
  full_.set("1");
  EXPECT_TRUE(is_in_share(0, 3));
  EXPECT_TRUE(is_in_share(1, 3));
}

TEST_F(TestRun, RunsDrawWhichCasesTheyHave) {
  EXPECT_TRUE(is_case_of_run("Suite.Case"));
  shares_.set("3");
  EXPECT_TRUE(is_case_of_run("Suite.Case")) << "ctest by itself runs all";
  std::vector<int> runs_of_case(200);
  int most_in_a_run = 0;
  for (int run = 0; run < 60; ++run) {
    run_.set(std::to_string(run * 12'345'677));
    int here = 0;
    for (std::size_t i = 0; i < runs_of_case.size(); ++i) {
      const int has = is_case_of_run("Suite.Case/" + std::to_string(i)) ? 1 : 0;
      runs_of_case[i] += has;
      here += has;
    }
    most_in_a_run = std::max(most_in_a_run, here);
  }
  EXPECT_LT(most_in_a_run, 100);
  for (const int runs : runs_of_case) EXPECT_NEAR(runs, 20, 16);
  full_.set("1");
  EXPECT_TRUE(is_case_of_run("Suite.Case/0") && is_case_of_run("Suite.Case/1") && is_case_of_run("Suite.Case/2"));
}

TEST_F(TestRun, AShareIsANumberOfAtLeastOne) {
  run_.set("1");
  const auto ask = [] { return is_case_of_run("Suite.Case") ? 1 : 0; };
  shares_.set("0");
  EXPECT_EQ(refusal_of(ask), "TORII_TEST_SHARES is '0'; it must be at least 1");
  shares_.set("half");
  EXPECT_EQ(refusal_of(ask), "TORII_TEST_SHARES is 'half'; it must be a number from 0 to 18446744073709551615");
}

/// The plugin of pytest must draw as the test programs do, or one number would not repeat a run.
TEST_F(TestRun, PythonDrawsAlike) {
  run_.set("54321");
  shares_.set("2");
  std::string expected;
  const std::string script = "import sys\nsys.path.insert(0, '" +
                             (std::filesystem::path(source_dir()) / "tests/support").string() +
                             "')\nimport shares\nprint(''.join(str(int(shares.is_case_of_run(f'test_{i}'))) "
                             "for i in range(100)))\n";
  for (int i = 0; i < 100; ++i) expected += is_case_of_run("test_" + std::to_string(i)) ? '1' : '0';
  const Outcome drawn = run({"/usr/bin/env", "python3", "-B", "-c", script});
  EXPECT_EQ(drawn.code, 0) << drawn.output;
  EXPECT_TRUE(holds(drawn.output, expected)) << drawn.output << expected;
}

TEST_F(TestRun, AnEntryWithSharesSaysWhatItLeaves) {
  run_.set("7");
  shares_.set("1000000");
  const Outcome few = run({helper("tools_tests"), "--files=tests/tools/test_test_run.cpp"});
  EXPECT_EQ(few.code, 0) << few.output;
  EXPECT_TRUE(holds(few.output, " tests are left to other runs")) << few.output;
  shares_.set("1x");
  EXPECT_EQ(run({helper("tools_tests")}).code, 2);
}

TEST_F(TestRun, CountsAreFullIfTheVariableIsThere) {
  EXPECT_FALSE(is_full());
  full_.set("1");
  EXPECT_TRUE(is_full());
}

/// An entry of ctest that names a file without tests must not pass for having run none.
TEST(TestProgram, RefusesFilesWithoutTestsAndUnknownArguments) {
  const Outcome none = run({helper("tools_tests"), "--files=tests/no_such_file.cpp"});
  EXPECT_EQ(none.code, 2) << none.output;
  EXPECT_TRUE(holds(none.output, "no test stands in --files=tests/no_such_file.cpp")) << none.output;
  const Outcome unknown = run({helper("tools_tests"), "--file=x"});
  EXPECT_EQ(unknown.code, 2) << unknown.output;
  EXPECT_TRUE(holds(unknown.output, "unknown argument '--file=x'")) << unknown.output;
}

}  // namespace
}  // namespace torii::tests
