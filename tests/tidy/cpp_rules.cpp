// SPDX-License-Identifier: Apache-2.0
// Rules about C and C++: guards, using directives, commented-out code, and the length of functions.
#include <algorithm>
#include <array>
#include <cctype>
#include <regex>

#include "tests/tidy/rules.hpp"

namespace torii::tidy {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFunctionLines = 60;

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  return text;
}

bool is_directive(std::string_view code) { return trim(code).starts_with('#'); }

void check_pragma_once(const fs::path&, const SourceFile& file, std::vector<Violation>& violations) {
  // "-inl" headers are Highway's: one source that is included once per instruction set.
  if (file.kind != Kind::cpp || !file.is_header() || file.path.ends_with("-inl.hpp")) return;
  for (const std::string& line : file.code) {
    if (trim(line) == "#pragma once") return;
  }
  report(violations, "pragma_once", file, 0, "a header needs #pragma once");
}

void check_using_namespace(const fs::path&, const SourceFile& file, std::vector<Violation>& violations) {
  if (file.kind != Kind::cpp || !file.is_header()) return;
  for (size_t i = 0; i < file.code.size(); ++i) {
    if (file.code[i].find("using namespace ") != std::string::npos) {
      report(violations, "using_namespace", file, i, "a header must not open a namespace for its readers");
    }
  }
}

/// A heuristic: a comment line is code if it is a directive, or ends like a statement and begins like one: at most
/// three words before a call, an assignment or a control statement. Prose that happens to look so can be worded
/// otherwise.
bool looks_like_code(std::string_view comment) {
  static const std::regex code(
      R"(#(include|if|ifdef|ifndef|define|endif)\b.*|\};?|return\b.*;|(if|for|while|switch) \(.*\) *\{?|)"
      R"(([\w:.<>*&\[\]-]+ ?){1,3} [-+*/|&^]?= .*;|([\w:.<>*&-]+ )?[\w:.>-]+\(.*\);)");
  std::string_view text = trim(comment);
  while (!text.empty() && (text[0] == '/' || text[0] == '*' || text[0] == '<')) text.remove_prefix(1);
  if (text.ends_with("*/")) text.remove_suffix(2);
  text = trim(text);
  return std::regex_match(text.begin(), text.end(), code);
}

void check_commented_code(const fs::path&, const SourceFile& file, std::vector<Violation>& violations) {
  if (file.kind != Kind::cpp) return;
  for (size_t i = 0; i < file.comments.size(); ++i) {
    if (trim(file.code[i]).empty() && looks_like_code(file.comments[i])) {
      report(violations, "commented_code", file, i, "code in a comment: " + std::string(trim(file.comments[i])));
    }
  }
}

/// Finds function bodies by their braces. A heuristic that reads no types: a block at namespace or class scope is a
/// function if its head has parentheses and no assignment outside them.
class FunctionFinder {
 public:
  FunctionFinder(const SourceFile& file, std::vector<Violation>& violations) : file_(file), violations_(violations) {}

  void run() {
    bool is_continued = false;
    for (line_ = 0; line_ < file_.code.size(); ++line_) {
      const std::string& code = file_.code[line_];
      const bool is_preprocessor = is_continued || is_directive(code);
      is_continued = is_preprocessor && code.ends_with('\\');
      if (is_preprocessor) continue;
      for (const char c : code) read(c);
      read(' ');
    }
  }

 private:
  void read(char c) {
    if (depth_ > 0) {
      depth_ += c == '{' ? 1 : c == '}' ? -1 : 0;
      if (depth_ == 0) close_block();
    } else if (c == '{' && parentheses_ == 0) {
      open_block();
    } else if (c == ';' || (c == '}' && parentheses_ == 0)) {
      start_head();
    } else if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      // Members may be initialised with braces in the head of a constructor: such a block ends, the head goes on.
      if (is_after_block_ && c != ',') start_head();
      is_after_block_ = false;
      if (head_.empty()) head_line_ = line_;
      parentheses_ += c == '(' ? 1 : c == ')' ? -1 : 0;
      head_ += c;
    } else {
      head_ += head_.empty() ? "" : " ";
    }
  }

  void start_head() {
    head_.clear();
    parentheses_ = 0;
    is_after_block_ = false;
  }

  void open_block() {
    is_after_block_ = false;
    if (is_scope()) {
      start_head();
    } else {
      is_function_ = looks_like_function();
      depth_ = 1;
    }
  }

  void close_block() {
    const size_t length = line_ - head_line_ + 1;
    if (is_function_ && length > kFunctionLines) {
      report(violations_, "function_length", file_, head_line_,
             std::to_string(length) + " lines; at most " + std::to_string(kFunctionLines));
    }
    if (!is_function_) start_head();
    is_after_block_ = is_function_;
  }

  /// The head without what may precede the keyword: template parameters.
  std::string_view bare_head() const {
    std::string_view head = trim(head_);
    while (head.starts_with("template")) {
      int angles = 0;
      size_t at = head.find('<');
      for (; at < head.size(); ++at) {
        angles += head[at] == '<' ? 1 : head[at] == '>' ? -1 : 0;
        if (angles == 0) break;
      }
      head = trim(head.substr(std::min(at + 1, head.size())));
    }
    return head;
  }

  bool is_scope() const {
    const std::string_view head = bare_head();
    for (const std::string_view word : {"namespace", "inline namespace", "class ", "struct ", "union "}) {
      if (head.starts_with(word)) return true;
    }
    return head.starts_with("extern") && head.find('(') == std::string_view::npos;
  }

  bool looks_like_function() const {
    const std::string_view head = bare_head();
    if (head.find("operator") != std::string_view::npos) return true;
    int parentheses = 0;
    bool has_parentheses = false;
    for (const char c : head) {
      parentheses += c == '(' ? 1 : c == ')' ? -1 : 0;
      has_parentheses = has_parentheses || c == '(';
      if (c == '=' && parentheses == 0) return false;
    }
    return has_parentheses;
  }

  const SourceFile& file_;
  std::vector<Violation>& violations_;
  std::string head_;
  size_t head_line_ = 0;
  size_t line_ = 0;
  int parentheses_ = 0;  ///< open in the head
  int depth_ = 0;        ///< braces open since the head of the current block, 0 at namespace and class scope
  bool is_function_ = false;
  bool is_after_block_ = false;
};

void check_function_length(const fs::path&, const SourceFile& file, std::vector<Violation>& violations) {
  if (file.kind == Kind::cpp) FunctionFinder(file, violations).run();
}

constexpr std::array kCppRules = {
    Rule{"pragma_once", check_pragma_once},
    Rule{"using_namespace", check_using_namespace},
    Rule{"commented_code", check_commented_code},
    Rule{"function_length", check_function_length},
};

}  // namespace

std::span<const Rule> cpp_rules() { return kCppRules; }

}  // namespace torii::tidy
