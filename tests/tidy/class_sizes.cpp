// SPDX-License-Identifier: Apache-2.0
// Counts the member functions and the data members of each class, by its tokens. The reader knows the declarations of
// this project and no types: templates, nested classes, enums, friends, bit fields, and pointers to functions.
#include <algorithm>
#include <cctype>

#include "tests/tidy/rules.hpp"

namespace torii::tidy {
namespace {

struct Token {
  std::string_view text;
  size_t line = 0;  ///< from 0
};

/// The length of the token that `rest` begins with. A literal is one token; so are "::" and "->".
size_t token_length(std::string_view rest) {
  if (rest[0] == '"' || rest[0] == '\'') return std::min(rest.find(rest[0], 1), rest.size() - 1) + 1;
  if (rest.starts_with("::") || rest.starts_with("->")) return 2;
  const bool is_number = std::isdigit(static_cast<unsigned char>(rest[0])) != 0;
  size_t length = 0;
  while (length < rest.size() &&
         (is_word_character(rest[length]) || (is_number && (rest[length] == '.' || rest[length] == '\'')))) {
    ++length;
  }
  return std::max<size_t>(length, 1);
}

/// The tokens of a file without its preprocessor lines. They point into `file`.
std::vector<Token> tokens_of(const SourceFile& file) {
  std::vector<Token> tokens;
  bool is_directive = false;
  for (size_t line = 0; line < file.code.size(); ++line) {
    std::string_view rest = file.code[line];
    const size_t begin = std::min(rest.find_first_not_of(" \t"), rest.size());
    const bool is_continued = is_directive;
    is_directive = is_continued || rest.substr(begin).starts_with('#');
    if (is_directive) {
      is_directive = rest.ends_with('\\');
      continue;
    }
    rest.remove_prefix(begin);
    while (!rest.empty()) {
      const size_t length = token_length(rest);
      tokens.push_back({rest.substr(0, length), line});
      rest.remove_prefix(length);
      rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    }
  }
  return tokens;
}

/// Reads the declarations of one file. The members skip_...() move past what they name.
class ClassReader {
 public:
  explicit ClassReader(const SourceFile& file) : tokens_(tokens_of(file)) {}

  std::vector<ClassSize> run() {
    while (at_ < tokens_.size()) read_scope("", nullptr);
    return std::move(sizes_);
  }

 private:
  std::string_view text(size_t at) const { return at < tokens_.size() ? tokens_[at].text : std::string_view(); }
  bool is(std::string_view expected) const { return text(at_) == expected; }
  bool is_any(std::initializer_list<std::string_view> expected) const {
    return std::find(expected.begin(), expected.end(), text(at_)) != expected.end();
  }
  bool is_word(size_t at) const { return !text(at).empty() && is_word_character(text(at)[0]); }
  bool is_end() const { return at_ >= tokens_.size(); }

  /// A bracket and all up to the one that closes it. Angle brackets are no brackets here.
  void skip_brackets() {
    int depth = 0;
    do {
      depth += is_any({"(", "[", "{"}) ? 1 : is_any({")", "]", "}"}) ? -1 : 0;
      ++at_;
    } while (depth > 0 && !is_end());
  }

  /// Template arguments or parameters, from their '<'.
  void skip_angles() {
    int depth = 0;
    do {
      if (is_any({"(", "[", "{"})) {
        skip_brackets();
        continue;
      }
      depth += is("<") ? 1 : is(">") ? -1 : 0;
      ++at_;
    } while (depth > 0 && !is_end());
  }

  /// One token, or all that stands in brackets.
  void skip_unit() {
    if (is_any({"(", "[", "{"})) {
      skip_brackets();
    } else if (is("<")) {
      skip_angles();
    } else {
      ++at_;
    }
  }

  void skip_statement() {
    while (!is(";") && !is_end()) {
      if (is("<")) {
        ++at_;
      } else {
        skip_unit();
      }
    }
    ++at_;
  }

  /// A constraint from its `requires`: parentheses, requires-expressions and concepts, joined by && and ||.
  void skip_constraint() {
    do {
      ++at_;
      while (is_any({"!", "&", "|"})) ++at_;
      if (is("(")) {
        skip_brackets();
      } else if (is("requires")) {
        ++at_;
        while (is_any({"(", "{"})) skip_brackets();
      } else {
        while (text(at_ + 1) == "::") at_ += 2;
        ++at_;
        if (is("<")) skip_angles();
        while (is("::")) at_ += 2;
      }
    } while (is_any({"&", "|"}));
  }

  void skip_attributes() {
    while (true) {
      if (is("[") && text(at_ + 1) == "[") {
        skip_brackets();
      } else if (is_any({"alignas", "__attribute__"})) {
        ++at_;
        skip_brackets();
      } else {
        return;
      }
    }
  }

  /// The declarations up to the end of a block, and its brace. Members count for `owner` if there is one.
  void read_scope(const std::string& scope, ClassSize* owner) {
    while (!is("}") && !is_end()) read_declaration(scope, owner);
    ++at_;
  }

  void read_declaration(const std::string& scope, ClassSize* owner) {
    if (is(";")) return void(++at_);
    if (is_any({"public", "protected", "private"})) return void(at_ += 2);
    while (is("template")) {
      ++at_;
      if (is("<")) skip_angles();
      if (is("requires")) skip_constraint();
    }
    skip_attributes();
    while (is_any({"static", "const", "constexpr", "inline", "mutable"})) ++at_;
    skip_attributes();
    if (is_any({"using", "static_assert"})) return skip_statement();
    if (is_any({"friend", "typedef"})) {
      ++at_;
      owner = nullptr;
    }
    if (!read_namespace(scope) && !read_enum(owner) && !read_class(scope, owner)) read_member(owner);
  }

  bool read_namespace(const std::string& scope) {
    if (is("extern") && text(at_ + 1).starts_with('"')) {
      at_ += 2;
      if (!is("{")) return false;
      ++at_;
      read_scope(scope, nullptr);
      return true;
    }
    if (!is("namespace")) return false;
    ++at_;
    std::string name;
    while (is_word(at_) || is("::")) name += text(at_++);
    if (is("{")) {
      ++at_;
      read_scope(name.empty() ? scope : scope + name + "::", nullptr);
    } else {
      skip_statement();
    }
    return true;
  }

  bool read_enum(ClassSize* owner) {
    if (!is("enum")) return false;
    ++at_;
    if (is_any({"class", "struct"})) ++at_;
    skip_attributes();
    if (is_word(at_) && !is_word(at_ + 1)) ++at_;
    if (is(":")) skip_to_body();
    if (is(";")) return true;
    if (!is("{")) return false;
    skip_brackets();
    if (!is(";")) read_declarators(owner);
    return true;
  }

  /// A list of bases, or the type behind an enum, up to the braces.
  void skip_to_body() {
    while (!is_any({"{", ";"}) && !is_end()) {
      if (is("<")) {
        skip_angles();
      } else {
        ++at_;
      }
    }
  }

  /// The name of a class, behind its keyword. Words before it in capitals are macros.
  std::string read_class_name() {
    while (is_word(at_) && is_word(at_ + 1) && text(at_ + 1) != "final" &&
           std::none_of(text(at_).begin(), text(at_).end(), [](char c) { return c >= 'a' && c <= 'z'; })) {
      ++at_;
    }
    std::string name;
    while (is_word(at_) && (name.empty() || text(at_ - 1) == "::")) {
      name += text(at_++);
      if (is("<")) skip_angles();
      if (is("::")) name += text(at_++);
    }
    if (is("final")) ++at_;
    return name;
  }

  /// A definition, or an announcement without members. Otherwise nothing is read: the keyword begins a type.
  bool read_class(const std::string& scope, ClassSize* owner) {
    if (!is_any({"class", "struct", "union"})) return false;
    const size_t begin = at_++;
    skip_attributes();
    const size_t line = tokens_[begin].line;
    const std::string name = read_class_name();
    if (is(";")) return true;
    if (is(":")) skip_to_body();
    if (!is("{")) {
      at_ = begin;
      return false;
    }
    ++at_;
    ClassSize size{.name = scope + (name.empty() ? "(unnamed)" : name), .line = line};
    read_scope(size.name + "::", &size);
    skip_attributes();
    const bool has_declarators = !is(";");
    if (has_declarators) read_declarators(owner);
    if (name.empty() && !has_declarators) {
      // The members of an unnamed union or struct belong to the class around it.
      if (owner != nullptr) {
        owner->functions += size.functions;
        owner->data += size.data;
      }
    } else {
      sizes_.push_back(size);
    }
    return true;
  }

  /// One or more variables, or a function.
  void read_member(ClassSize* owner) {
    while (!is_any({";", "=", "{", ":", ",", "}"}) && !is_end()) {
      if (is("operator")) {
        at_ += text(at_ + 1) == "(" ? 3 : 1;
        while (!is("(") && !is_end()) ++at_;
        return read_function(owner);
      }
      if (is_any({"decltype", "explicit", "alignas", "__attribute__"}) && text(at_ + 1) == "(") {
        at_ += 1;
      } else if (is("(")) {
        if (!is_pointer_to_function()) return read_function(owner);
        break;
      }
      skip_unit();
    }
    if (is("}")) return;
    read_declarators(owner);
  }

  /// Whether the parenthesis holds the name of a variable, as in `int (*name)(int)` and `int (Class::*name)(int)`.
  bool is_pointer_to_function() const {
    size_t at = at_ + 1;
    while (is_word(at) && text(at + 1) == "::") at += 2;
    if (text(at) != "*" && text(at) != "&") return false;
    while (text(at) == "*" || text(at) == "&" || text(at) == "const") ++at;
    return !is_word(at) || text(at + 1) != "(";
  }

  /// Whether the '<' here opens template arguments and is no comparison.
  bool is_template_argument() const {
    int depth = 0;
    for (size_t at = at_; at < tokens_.size(); ++at) {
      depth += text(at) == "<" ? 1 : text(at) == ">" ? -1 : 0;
      if (depth == 0) return text(at + 1) == "(" || text(at + 1) == "{" || text(at + 1) == "::";
      const bool is_type = is_word(at) || text(at) == "::" || text(at) == "," || text(at) == "<" || text(at) == ">" ||
                           text(at) == "*" || text(at) == "&";
      if (!is_type) return false;
    }
    return false;
  }

  /// Variables up to their semicolon, with what initialises them.
  void read_declarators(ClassSize* owner) {
    int count = 1;
    while (!is(";") && !is_end()) {
      count += is(",") ? 1 : 0;
      if (is("<") && !is_template_argument()) {
        ++at_;
      } else {
        skip_unit();
      }
    }
    ++at_;
    if (owner != nullptr) owner->data += count;
  }

  /// A function from its parameters on, with its body if it has one.
  void read_function(ClassSize* owner) {
    if (owner != nullptr) ++owner->functions;
    skip_brackets();
    while (!is_any({";", "{", "="}) && !is_end()) {
      if (is(":")) {
        skip_initializers();
      } else if (is("requires")) {
        skip_constraint();
      } else {
        skip_unit();
      }
    }
    if (is("{")) {
      skip_brackets();
    } else {
      skip_statement();
    }
  }

  /// What a constructor initialises before its body, from the colon.
  void skip_initializers() {
    do {
      ++at_;
      while (!is_any({"(", "{"}) && !is_end()) skip_unit();
      skip_brackets();
      while (is(".")) ++at_;
    } while (is(","));
  }

  std::vector<Token> tokens_;
  std::vector<ClassSize> sizes_;
  size_t at_ = 0;
};

}  // namespace

std::vector<ClassSize> class_sizes(const SourceFile& file) { return ClassReader(file).run(); }

}  // namespace torii::tidy
