// SPDX-License-Identifier: Apache-2.0
// The list of tuned constants is true: code uses each, the plugin's macros have its values, and its measurements exist.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/tuned_constants.hpp"
#include "tests/support/places.hpp"
#include "tests/tidy/rules.hpp"

namespace torii::tidy {
namespace {

const std::vector<SourceFile>& tree() {
  static const std::vector<SourceFile> kTree = read_tree(tests::source_dir());
  return kTree;
}

/// The names for which code asks by tuned<T>("NAME").
std::set<std::string> used_names() {
  constexpr std::string_view kBefore = ">(\"";
  std::set<std::string> names;
  for (const SourceFile& file : tree()) {
    if (file.kind != Kind::cpp || file.path.starts_with("tests/")) continue;
    for (const std::string& line : file.lines) {
      for (std::size_t at = line.find(kBefore); at != line.npos; at = line.find(kBefore, at)) {
        at += kBefore.size();
        names.insert(line.substr(at, line.find('"', at) - at));
      }
    }
  }
  return names;
}

/// The number of a macro of a file of the plugin; "" if the file has no such macro.
std::string macro(const std::string& path, const std::string& name) {
  const std::regex definition("#define " + name + R"( (?:\(\(size_t\))?(\d+)\)?)");
  for (const SourceFile& file : tree()) {
    if (file.path != path + ".c" && file.path != path + ".h") continue;
    for (const std::string& line : file.lines) {
      std::smatch match;
      if (std::regex_match(line, match, definition)) return match[1];
    }
  }
  return "";
}

TEST(TunedConstants, NamesAreUnlike) {
  std::set<std::string_view> names;
  for (const Tuned& one : kTuned) EXPECT_TRUE(names.insert(one.name).second) << one.name;
}

TEST(TunedConstants, EachIsUsed) {
  ASSERT_GT(tree().size(), 10u) << "the tree was not found";
  const std::set<std::string> used = used_names();
  const std::regex of_plugin(R"(openmpi\.(\w+)\.(\w+))");
  for (const Tuned& one : kTuned) {
    const std::string name(one.name);
    std::smatch match;
    if (!std::regex_match(name, match, of_plugin)) {
      EXPECT_TRUE(used.contains(name)) << "no code asks for tuned<T>(\"" << name << "\"); remove the row";
      continue;
    }
    const std::string path = "plugins/openmpi/coll_torii_" + match[1].str();
    EXPECT_EQ(macro(path, match[2]), std::to_string(static_cast<int>(one.value))) << name << " of " << path;
  }
}

TEST(TunedConstants, MeasurementsExist) {
  const std::regex file(R"(perf/results/[-\w.]+\w)");
  for (const Tuned& one : kTuned) {
    EXPECT_FALSE(one.meaning.empty() || one.origin.empty()) << one.name;
    const std::string origin(one.origin);
    for (std::sregex_iterator at(origin.begin(), origin.end(), file), end; at != end; ++at) {
      EXPECT_TRUE(std::filesystem::exists(std::filesystem::path(tests::source_dir()) / at->str())) << one.name;
    }
  }
}

}  // namespace
}  // namespace torii::tidy
