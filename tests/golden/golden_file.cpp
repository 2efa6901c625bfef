// SPDX-License-Identifier: Apache-2.0
// Reads, writes and compares golden files.
#include "tests/golden/golden_file.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/support/places.hpp"

namespace torii::golden {
namespace {

constexpr std::string_view kBetween = " = ";
constexpr std::string_view kHowToWrite =
    "To write the files anew run golden_test with TORII_GOLDEN_WRITE=1. Commit them with the change that needs them "
    "and "
    "its reason, and with nothing else (docs/testing.md, \"Golden files\").";

/// The values by key. A key that occurs twice is added to `problems`.
std::map<std::string_view, std::string_view> index_of(const std::string& side, const Lines& lines,
                                                      std::vector<std::string>& problems) {
  std::map<std::string_view, std::string_view> index;
  for (const Line& line : lines) {
    if (!index.emplace(line.key, line.value).second) problems.push_back(line.key + ": twice " + side);
  }
  return index;
}

}  // namespace

Lines parse(std::string_view text) {
  Lines lines;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t at = line.find(kBetween);
    const bool has_value = at != std::string::npos;
    lines.push_back({line.substr(0, at), has_value ? line.substr(at + kBetween.size()) : ""});
  }
  return lines;
}

std::string format(std::string_view about, const Lines& lines) {
  std::string text = "# " + std::string(about) + "\n# Written by golden_test; docs/testing.md says how.\n";
  for (const Line& line : lines) text += line.key + std::string(kBetween) + line.value + "\n";
  return text;
}

std::vector<std::string> differences(const std::string& name, const Lines& asked, const Lines& got, std::size_t most) {
  std::vector<std::string> all;
  const auto asked_index = index_of("in the file", asked, all);
  const auto got_index = index_of("among what was computed", got, all);
  for (const Line& line : got) {
    const auto at = asked_index.find(line.key);
    if (at == asked_index.end()) {
      all.push_back(line.key + ": asked nothing (no such line), got " + line.value);
    } else if (at->second != line.value) {
      all.push_back(line.key + ": asked " + std::string(at->second) + ", got " + line.value);
    }
  }
  for (const Line& line : asked) {
    if (!got_index.contains(line.key)) all.push_back(line.key + ": asked " + line.value + ", got nothing");
  }
  if (all.empty() && asked != got) all.emplace_back("the same lines in another order");
  for (std::string& one : all) one = name + ": " + one;
  if (all.size() > most) {
    const std::string count = std::to_string(all.size());
    all.resize(most);
    all.push_back(name + ": " + count + " mismatches in all");
  }
  return all;
}

std::filesystem::path folder() { return std::filesystem::path(tests::source_dir()) / "tests" / "golden"; }

bool is_writing() {
  static const bool writing = [] {
    const char* value = std::getenv("TORII_GOLDEN_WRITE");
    return value != nullptr && std::string_view(value) == "1";
  }();
  return writing;
}

void check_file(const std::string& name, std::string_view about, const Lines& got) {
  const std::filesystem::path path = folder() / name;
  const std::string text = format(about, got);
  if (parse(text) != got) {
    ADD_FAILURE() << name << ": a line cannot be read back (a key with \" = \", or a line break)";
    return;
  }
  if (is_writing()) {
    std::ofstream stream(path, std::ios::binary);
    stream << text;
    stream.close();
    ADD_FAILURE() << path << (stream ? " was written; run the test again without TORII_GOLDEN_WRITE" : ": not written");
    return;
  }
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream committed;
  committed << stream.rdbuf();
  const std::vector<std::string> found = differences(name, parse(committed.str()), got);
  if (found.empty()) {
    EXPECT_TRUE(committed.str() == text) << name << ": only comments or white space differ\n" << kHowToWrite;
    return;
  }
  std::string message;
  for (const std::string& one : found) message += one + "\n";
  ADD_FAILURE() << message << kHowToWrite;
}

}  // namespace torii::golden
