// SPDX-License-Identifier: Apache-2.0
// Rules about the tree as a whole: what may stand at its top, and that the documents name only what there is: options
// of programs, TORII_ names, files and headings that links lead to.
#include <algorithm>
#include <array>
#include <cctype>
#include <regex>
#include <set>

#include "tests/tidy/rules.hpp"

namespace torii::tidy {
namespace {

namespace fs = std::filesystem;

/// Everything else at the top was left there by mistake, as back traces of crashes are. `.git` is a file in a worktree.
constexpr auto kTop = std::to_array<std::string_view>({".clang-format", ".clang-tidy", ".codespellrc", ".git",
                                                       ".gitignore", "CHANGELOG.md", "CITATION.cff", "CMakeLists.txt",
                                                       "CMakePresets.json", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md",
                                                       "LICENSE", "README.md", "SECURITY.md", "VERSION", "dev"});

/// Words of the documents that no source holds: options of cmake, ctest, pkg-config, mpirun, ompi_info, docker and
/// GoogleTest, one of torchrun, a name that stands for all settings, and one that CMake puts together.
constexpr auto kOtherWords = std::to_array<std::string_view>({"--build",
                                                              "--cflags",
                                                              "--enable-recovery",
                                                              "--gtest_filter",
                                                              "--install",
                                                              "--ipc",
                                                              "--level",
                                                              "--libs",
                                                              "--map-by",
                                                              "--mca",
                                                              "--most",
                                                              "--output-on-failure",
                                                              "--param",
                                                              "--prefix",
                                                              "--preset",
                                                              "--rm",
                                                              "--standalone",
                                                              "--target",
                                                              "TORII_NAME",
                                                              "TORII_WITH_LIBFABRIC"});

void check_top(const fs::path& root, std::vector<Violation>& violations) {
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() || std::find(kTop.begin(), kTop.end(), name) != kTop.end()) continue;
    violations.push_back({"top_of_tree", name, 1, "this does not belong at the top of the tree"});
  }
}

std::set<std::string> words_in(const std::string& line) {
  static const std::regex word(R"((^|[^\w-])(--[a-z][\w-]*|TORII_[A-Z0-9_]*[A-Z0-9])(?=$|[^\w]))");
  std::set<std::string> words;
  // The character before a word may end the one before it, so the search goes on behind the word and not behind that.
  std::smatch match;
  for (auto at = line.begin(); std::regex_search(at, line.end(), match, word); at = match[2].second) {
    words.insert(match[2].str());
  }
  return words;
}

/// The names that sources and scripts hold. Settings are written there without their prefix.
std::set<std::string> known_words(const std::vector<SourceFile>& files) {
  static const std::regex setting(R"re("([A-Z][A-Z_]+)")re");
  std::set<std::string> known(kOtherWords.begin(), kOtherWords.end());
  for (const SourceFile& file : files) {
    if (file.kind != Kind::cpp && file.kind != Kind::script) continue;
    for (const std::string& line : file.lines) {
      if (line.find("--") != std::string::npos || line.find("TORII_") != std::string::npos) known.merge(words_in(line));
      if (!file.path.starts_with("runtime/")) continue;
      std::smatch match;
      if (std::regex_search(line, match, setting)) known.insert("TORII_" + match[1].str());
    }
  }
  return known;
}

void check_words(const SourceFile& file, const std::set<std::string>& known, std::vector<Violation>& violations) {
  for (size_t i = 0; i < file.lines.size(); ++i) {
    for (const std::string& word : words_in(file.lines[i])) {
      if (known.count(word) == 0) report(violations, "documents", file, i, word + " is in no source or script");
    }
  }
}

/// What a link to a heading is called: small letters, without punctuation, with '-' for spaces.
std::set<std::string> anchors_in(const SourceFile& file) {
  std::set<std::string> anchors;
  for (const std::string& line : file.lines) {
    if (!line.starts_with('#')) continue;
    std::string anchor;
    for (const char c : line.substr(std::min(line.find_first_not_of("# "), line.size()))) {
      const auto letter = static_cast<unsigned char>(c);
      if (std::isalnum(letter) != 0 || c == '-' || c == '_') anchor += static_cast<char>(std::tolower(letter));
      if (c == ' ') anchor += '-';
    }
    anchors.insert(anchor);
  }
  return anchors;
}

void check_links(const fs::path& root, const SourceFile& file, const std::vector<SourceFile>& files,
                 std::vector<Violation>& violations) {
  static const std::regex link(R"(\]\(([^)#]*)#?([^)]*)\))");
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    for (std::sregex_iterator at(line.begin(), line.end(), link); at != std::sregex_iterator(); ++at) {
      const std::string target = (*at)[1].str();
      const std::string anchor = (*at)[2].str();
      if (target.find("://") != std::string::npos) continue;
      const fs::path path =
          target.empty() ? fs::path(file.path) : (fs::path(file.path).parent_path() / target).lexically_normal();
      if (path.string().starts_with("..")) continue;  // rule "machine_path"
      if (!fs::exists(root / path)) report(violations, "documents", file, i, target + " does not exist");
      if (anchor.empty()) continue;
      const auto other =
          std::find_if(files.begin(), files.end(), [&](const auto& one) { return one.path == path.generic_string(); });
      if (other != files.end() && anchors_in(*other).count(anchor) == 0) {
        report(violations, "documents", file, i, path.generic_string() + " has no heading '" + anchor + "'");
      }
    }
  }
}

/// Every row of the table of settings has one in docs/embedding.md.
void check_settings(const std::vector<SourceFile>& files, std::vector<Violation>& violations) {
  static const std::regex row(R"re((\(|return \{)"([A-Z_]+)",)re");
  const auto at = [&](std::string_view path) {
    return std::find_if(files.begin(), files.end(), [=](const auto& one) { return one.path == path; });
  };
  const auto settings = at("runtime/base/settings.cpp");
  const auto document = at("docs/embedding.md");
  if (settings == files.end() || document == files.end()) return;
  for (size_t i = 0; i < settings->lines.size(); ++i) {
    std::smatch match;
    if (!std::regex_search(settings->lines[i], match, row)) continue;
    const std::string begin = "| " + match[2].str() + " |";
    const bool is_there = std::any_of(document->lines.begin(), document->lines.end(),
                                      [&](const std::string& line) { return line.starts_with(begin); });
    if (!is_there) report(violations, "documents", *settings, i, match[2].str() + " is not in docs/embedding.md");
  }
}

}  // namespace

void check_whole(const fs::path& root, const std::vector<SourceFile>& files, std::vector<Violation>& violations) {
  check_top(root, violations);
  check_settings(files, violations);
  check_standard_headers(files, violations);
  const std::set<std::string> known = known_words(files);
  for (const SourceFile& file : files) {
    if (file.kind != Kind::prose) continue;
    check_words(file, known, violations);
    check_links(root, file, files, violations);
  }
}

}  // namespace torii::tidy
