// SPDX-License-Identifier: Apache-2.0
// Reads the tree and separates the code of each file from its comments and literals.
#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>

#include "tests/tidy/rules.hpp"

namespace torii::tidy {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// Walks C or C++ text once. It knows comments, character, string and raw string literals and digit separators; line
/// continuations inside literals and trigraphs do not occur in this project.
class Separator {
 public:
  explicit Separator(std::string_view text) : text_(text), code_(text), comments_(text) {
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\n') comments_[i] = ' ';
    }
  }

  void run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (starts("//")) {
        comment_to(std::min(text_.find('\n', at_), text_.size()));
      } else if (starts("/*")) {
        const size_t end = text_.find("*/", at_ + 2);
        comment_to(end == std::string_view::npos ? text_.size() : end + 2);
      } else if (starts("R\"") && (at_ == 0 || !is_word_character(text_[at_ - 1]))) {
        raw_string();
      } else if (c == '"' || (c == '\'' && (at_ == 0 || !is_word_character(text_[at_ - 1])))) {
        literal(c);
      } else {
        ++at_;
      }
    }
  }

  const std::string& code() const { return code_; }
  const std::string& comments() const { return comments_; }

 private:
  bool starts(std::string_view with) const { return text_.substr(at_, with.size()) == with; }

  void blank_to(size_t end) {
    for (; at_ < end; ++at_) {
      if (text_[at_] != '\n') code_[at_] = ' ';
    }
  }

  void comment_to(size_t end) {
    std::copy(text_.begin() + static_cast<std::ptrdiff_t>(at_), text_.begin() + static_cast<std::ptrdiff_t>(end),
              comments_.begin() + static_cast<std::ptrdiff_t>(at_));
    blank_to(end);
  }

  void literal(char quote) {
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
    ++at_;
    blank_to(std::min(end, text_.size()));
    at_ = std::min(at_ + 1, text_.size());
  }

  void raw_string() {
    const size_t open = text_.find('(', at_);
    if (open == std::string_view::npos) return blank_to(text_.size());
    const std::string close = ")" + std::string(text_.substr(at_ + 2, open - at_ - 2)) + "\"";
    const size_t end = text_.find(close, open);
    blank_to(end == std::string_view::npos ? text_.size() : end + close.size());
  }

  std::string_view text_;
  std::string code_;
  std::string comments_;
  size_t at_ = 0;
};

Kind kind_of(const fs::path& path, std::string_view text) {
  const std::string extension = path.extension().string();
  for (const std::string_view cpp : {".hpp", ".h", ".cpp", ".c"}) {
    if (extension == cpp) return Kind::cpp;
  }
  for (const std::string_view script : {".cmake", ".sh", ".py"}) {
    if (extension == script) return Kind::script;
  }
  if (path.filename() == "CMakeLists.txt" || text.starts_with("#!")) return Kind::script;
  return extension == ".md" ? Kind::prose : Kind::other;
}

bool is_skipped_folder(const fs::path& folder) {
  const std::string name = folder.filename().string();
  return name == "build" || name == "__pycache__" || (name.starts_with(".") && name != ".ci");
}

}  // namespace

SourceFile parse_source(std::string path, Kind kind, std::string_view text) {
  SourceFile file;
  file.path = std::move(path);
  file.kind = kind;
  file.lines = split_lines(text);
  file.ends_with_newline = text.empty() || text.back() == '\n';
  if (kind == Kind::cpp) {
    Separator separator(text);
    separator.run();
    file.code = split_lines(separator.code());
    file.comments = split_lines(separator.comments());
  }
  return file;
}

std::vector<SourceFile> read_tree(const fs::path& root) {
  std::vector<SourceFile> files;
  for (auto entry = fs::recursive_directory_iterator(root); entry != fs::recursive_directory_iterator(); ++entry) {
    if (entry->is_directory() && is_skipped_folder(entry->path())) {
      entry.disable_recursion_pending();
      continue;
    }
    const fs::path name = entry->path().filename();
    // In a worktree `.git` is a file with a path of this machine.
    if (!entry->is_regular_file() || entry->is_symlink() || name == "LICENSE" || name == ".git") continue;
    std::ifstream stream(entry->path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    if (text.find('\0') != std::string::npos) continue;
    const fs::path path = entry->path().lexically_relative(root);
    files.push_back(parse_source(path.generic_string(), kind_of(path, text), text));
  }
  std::sort(files.begin(), files.end(), [](const auto& left, const auto& right) { return left.path < right.path; });
  return files;
}

}  // namespace torii::tidy
