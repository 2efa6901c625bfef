// SPDX-License-Identifier: Apache-2.0
// torii-sim faults and find_planted as users call them: what they print, and every bad command line with its reason.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/places.hpp"
#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

Outcome faults(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {bin_dir() + "/torii-sim", "faults"});
  return run(arguments);
}

Outcome find_planted(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), std::filesystem::path(source_dir()) / "tests" / "faults" / "find_planted");
  return run(arguments);
}

std::string contents(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

struct Refused {
  std::vector<std::string> arguments;
  std::string reason;
};

TEST(FaultsCommand, BadCommandLinesAreRefusedWithTheReason) {
  const Refused all[] = {
      {{"--seeds", "x"}, "--seeds is 'x'; it must be like 1..1000, or one number"},
      {{"--seeds", "5..1"}, "--seeds is '5..1'; it must be like 1..1000, or one number"},
      {{"--seeds", "1.."}, "--seeds is '1..'; it must be like 1..1000, or one number"},
      {{"--seeds", "1..3x"}, "--seeds is '1..3x'; it must be like 1..1000, or one number"},
      {{"--seeds", "-1"}, "--seeds"},
      {{"--seeds", "1", "--processes", "0"}, "--processes: Value 0 not in range 1 to 256"},
      {{"--seeds", "1", "--failures", "0"}, "--failures: Value 0 not in range 1 to 1000000"},
      {{"--replay", "x"}, "--replay"},
      {{"--replay", "7", "--without", "s999"}, "'s999' names no part of history 7, which has steps s0 to s"},
      {{"--replay", "7", "--without", "q"}, "'q' names no part of history 7"},
      {{"--replay", "7", "--svg", "no-such-folder/all.svg"}, "cannot write 'no-such-folder/all.svg'"},
      {{"--without", "s1"}, "--without requires --replay"},
      {{"--trace"}, "--trace requires --replay"},
      {{"--svg", "x.svg"}, "--svg requires --replay"},
      {{"--nothing"}, "--nothing"},
  };
  for (const Refused& one : all) {
    const Outcome outcome = faults(one.arguments);
    EXPECT_EQ(outcome.code, 2) << one.arguments.back() << "\n" << outcome.output;
    EXPECT_TRUE(holds(outcome.output, one.reason)) << outcome.output << "\nlacks: " << one.reason;
  }
}

TEST(FaultsCommand, HistoriesAreCounted) {
  const Outcome outcome = faults({"--seeds", "1..20", "--processes", "2"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  for (const char* const line : {"histories      20\n", "calls ", "survivors ", "faults ", "deaths while ", "memory ",
                                 "points, ", "failures       0\n"}) {
    EXPECT_TRUE(holds(outcome.output, line)) << line << "\n" << outcome.output;
  }
  EXPECT_TRUE(holds(faults({"--seeds", "7"}).output, "histories      1\n"));
}

TEST(FaultsCommand, AReplayTellsTheHistoryAndIsTheSameEachTime) {
  const Outcome first = faults({"--replay", "7"});
  EXPECT_EQ(first.code, 0) << first.output;
  EXPECT_TRUE(holds(first.output, "history 7: ")) << first.output;
  EXPECT_TRUE(holds(first.output, "step 0: ")) << first.output;
  EXPECT_TRUE(std::regex_search(first.output, std::regex("digest [0-9a-f]{16}\n"))) << first.output;
  EXPECT_EQ(faults({"--replay", "7"}).output, first.output);
  const Outcome traced = faults({"--replay", "7", "--trace"});
  EXPECT_TRUE(holds(traced.output, " us  rank 0  making the team\n")) << traced.output.substr(0, 2000);
  EXPECT_FALSE(holds(faults({"--replay", "7", "--without", "s0"}).output, "step 0: "));
}

TEST(FaultsCommand, APictureIsWellFormedAndTheSameEachTime) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("torii_test_faults_" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  std::string pictures[2];
  for (std::string& picture : pictures) {
    const std::string path = folder / "history.svg";
    const Outcome outcome = faults({"--replay", TORII_TEST_PICTURE_SEED, "--svg", path});
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    picture = contents(path);
  }
  std::filesystem::remove_all(folder);
  EXPECT_EQ(pictures[0], pictures[1]);
  EXPECT_TRUE(pictures[0].starts_with("<svg ") && pictures[0].ends_with("</svg>\n"));
  EXPECT_FALSE(holds(pictures[0], "nan"));
  for (const char* const part : {"rank 0</text>", "marker-end=\"url(#put)\"", "make team: ok", "dies at "}) {
    EXPECT_TRUE(holds(pictures[0], part)) << part;
  }
  // Each element is closed in itself or by its own end.
  std::vector<std::string> open;
  const std::regex tag("<(/?)([a-zA-Z]+)[^<>]*?(/?)>");
  for (std::sregex_iterator at(pictures[0].begin(), pictures[0].end(), tag), end; at != end; ++at) {
    if (!(*at)[3].str().empty()) continue;
    if ((*at)[1].str().empty()) {
      open.push_back((*at)[2]);
    } else {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), (*at)[2]);
      open.pop_back();
    }
  }
  EXPECT_TRUE(open.empty());
}

TEST(FindPlanted, SaysHowItIsCalledAndWhatItDoesNotKnow) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{}, {"--help"}}) {
    const Outcome outcome = find_planted(arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_TRUE(holds(outcome.output, "usage: tests/faults/find_planted FOLDER [NAME...]")) << outcome.output;
  }
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("torii_test_planted_" + std::to_string(::getpid()));
  const Outcome outcome = find_planted({folder, "no-such-fault"});
  std::filesystem::remove_all(folder);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(holds(outcome.output, "find_planted: there is no fault 'no-such-fault' in tests/faults/planted\n"))
      << outcome.output;
}

TEST(FindPlanted, EveryFaultFitsTheSources) {
  const std::filesystem::path sources(source_dir());
  int faults = 0;
  for (const auto& file : std::filesystem::directory_iterator(sources / "tests" / "faults" / "planted")) {
    const Outcome outcome = run({"patch", "-d", sources, "-p1", "--dry-run", "-i", file.path()});
    EXPECT_EQ(outcome.code, 0) << file.path() << "\n" << outcome.output;
    EXPECT_FALSE(holds(outcome.output, "fuzz")) << file.path() << "\n" << outcome.output;
    ++faults;
  }
  EXPECT_GE(faults, 15);
}

}  // namespace
}  // namespace torii::tests
