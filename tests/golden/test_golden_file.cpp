// SPDX-License-Identifier: Apache-2.0
// Reading, writing and comparing golden files: each kind of difference is found and named.
#include <gtest/gtest.h>

#include "tests/golden/golden_file.hpp"

namespace torii::golden {
namespace {

const Lines kAsked = {{"a b", "1"}, {"c", "x = y"}, {"d", ""}};

TEST(GoldenFile, ReadsBackWhatItWrites) {
  const std::string text = format("About.", kAsked);
  EXPECT_TRUE(text.starts_with("# About.\n"));
  EXPECT_TRUE(parse(text) == kAsked) << text;
  EXPECT_TRUE(differences("f", kAsked, kAsked).empty());
}

TEST(GoldenFile, NamesAskedAndGot) {
  Lines got = kAsked;
  got[1].value = "z";
  EXPECT_EQ(differences("f", kAsked, got), std::vector<std::string>{"f: c: asked x = y, got z"});
}

TEST(GoldenFile, FindsMissingAndSurplusLines) {
  const Lines fewer = {kAsked[0], kAsked[2]};
  EXPECT_EQ(differences("f", kAsked, fewer), std::vector<std::string>{"f: c: asked x = y, got nothing"});
  EXPECT_EQ(differences("f", fewer, kAsked), std::vector<std::string>{"f: c: asked nothing (no such line), got x = y"});
  EXPECT_EQ(differences("f", {}, kAsked).size(), kAsked.size()) << "an empty or missing file";
}

TEST(GoldenFile, FindsLinesThatOccurTwiceOrElsewhere) {
  Lines twice = kAsked;
  twice.push_back(kAsked[0]);
  EXPECT_EQ(differences("f", twice, kAsked), std::vector<std::string>{"f: a b: twice in the file"});
  EXPECT_EQ(differences("f", kAsked, twice), std::vector<std::string>{"f: a b: twice among what was computed"});
  const Lines turned = {kAsked[1], kAsked[0], kAsked[2]};
  EXPECT_EQ(differences("f", kAsked, turned), std::vector<std::string>{"f: the same lines in another order"});
}

TEST(GoldenFile, CountsWhatItDoesNotPrint) {
  Lines got;
  for (int i = 0; i < 30; ++i) got.push_back({std::to_string(i), "v"});
  const std::vector<std::string> found = differences("f", {}, got);
  ASSERT_EQ(found.size(), 21U);
  EXPECT_EQ(found.back(), "f: 30 mismatches in all");
}

}  // namespace
}  // namespace torii::golden
