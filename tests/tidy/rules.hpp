// SPDX-License-Identifier: Apache-2.0
// The style of this project as rules over source files. Every rule is a function from one file, or one tree, to the
// places that break it; tidy_test.cpp runs them over the project and over planted violations.
#pragma once

#include <cctype>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace torii::tidy {

enum class Kind {
  cpp,     ///< C and C++ sources and headers
  script,  ///< CMake, shell and Python
  prose,   ///< Markdown
  other,   ///< any other text: only machine paths are looked for
};

/// One file as the rules see it. All three views have one entry per line, without the line break.
struct SourceFile {
  std::string path;  ///< relative to the root, with '/'
  Kind kind = Kind::other;
  std::vector<std::string> lines;
  std::vector<std::string> code;      ///< `lines` with comments and the contents of literals blanked; C and C++ only
  std::vector<std::string> comments;  ///< what the comments of each line say; C and C++ only
  bool ends_with_newline = true;

  bool is_header() const { return path.ends_with(".hpp") || path.ends_with(".h"); }
};

/// A character of a name.
inline bool is_word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

struct Violation {
  std::string rule;
  std::string path;
  int line = 0;  ///< from 1
  std::string message;
};

struct Rule {
  std::string_view name;
  void (*check)(const std::filesystem::path& root, const SourceFile& file, std::vector<Violation>& violations);
  size_t exceptions_max = std::numeric_limits<size_t>::max();  ///< lines of exceptions.txt
};

std::span<const Rule> text_rules();
std::span<const Rule> cpp_rules();
std::span<const Rule> include_rules();
std::span<const Rule> class_rules();

struct Include {
  size_t line = 0;  ///< from 0
  std::string target;
  bool quoted = false;
};

/// The includes of a file of C or C++, in the order in which they stand.
std::vector<Include> includes_of(const SourceFile& file);

/// A class, struct or union with its own members; those of nested classes count for the nested ones.
struct ClassSize {
  std::string name;   ///< with namespaces and the classes around it
  size_t line = 0;    ///< from 0
  int functions = 0;  ///< declared ones, with constructors, the destructor, operators, and deleted functions
  int data = 0;       ///< variables, static ones included

  /// Plain data may be of any size.
  bool is_too_large() const;
};

/// The classes that are defined in a file.
std::vector<ClassSize> class_sizes(const SourceFile& file);

/// Rule "standard_headers": a header includes what declares the names of the standard library that it uses. It looks at
/// all files, for what a header includes through others.
void check_standard_headers(const std::vector<SourceFile>& files, std::vector<Violation>& violations);

/// Rules that need more than one file: "top_of_tree", which files may stand at the top, "documents", whether the
/// options, TORII_ names and links of the prose exist, and "standard_headers". They have no exceptions.
void check_whole(const std::filesystem::path& root, const std::vector<SourceFile>& files,
                 std::vector<Violation>& violations);

/// Splits `text` into the views of a SourceFile.
SourceFile parse_source(std::string path, Kind kind, std::string_view text);

/// All text files under `root`, without build trees and hidden folders other than .ci. Sorted by path.
std::vector<SourceFile> read_tree(const std::filesystem::path& root);

/// Violations of all rules in the tree, after the exceptions of `exceptions_text`. Each of its lines is
/// `rule path reason...`; blank lines and those that start with '#' are skipped. An exception without a reason, for an
/// unknown rule, or that nothing needs is itself a violation (rule "exceptions").
std::vector<Violation> check_tree(const std::filesystem::path& root, std::string_view exceptions_text);

/// Appends a violation at `line`, counted from 0.
void report(std::vector<Violation>& violations, std::string_view rule, const SourceFile& file, size_t line,
            std::string message);

}  // namespace torii::tidy
