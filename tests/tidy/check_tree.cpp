// SPDX-License-Identifier: Apache-2.0
// Runs every rule over a tree and takes off the exceptions that are written down with a reason.
#include <algorithm>
#include <sstream>

#include "tests/tidy/rules.hpp"

namespace torii::tidy {
namespace {

constexpr std::string_view kExceptionsPath = "tests/tidy/exceptions.txt";

struct Exception {
  int line = 0;
  std::string rule;
  std::string path;
  std::string reason;
  bool is_needed = false;
};

std::vector<Exception> parse_exceptions(std::string_view text) {
  std::vector<Exception> exceptions;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream words(line);
    Exception exception;
    exception.line = number;
    words >> exception.rule >> exception.path >> std::ws;
    std::getline(words, exception.reason);
    exceptions.push_back(exception);
  }
  return exceptions;
}

std::vector<Rule> all_rules() {
  std::vector<Rule> rules;
  for (const auto& part : {text_rules(), cpp_rules(), include_rules(), class_rules()})
    rules.insert(rules.end(), part.begin(), part.end());
  return rules;
}

void check_exceptions(const std::vector<Exception>& exceptions, const std::vector<Rule>& rules,
                      std::vector<Violation>& violations) {
  for (const Exception& exception : exceptions) {
    const auto complain = [&](std::string message) {
      violations.push_back({"exceptions", std::string(kExceptionsPath), exception.line, std::move(message)});
    };
    const bool is_known =
        std::any_of(rules.begin(), rules.end(), [&](const Rule& rule) { return rule.name == exception.rule; });
    if (!is_known) {
      complain("there is no rule '" + exception.rule + "'");
    } else if (exception.reason.empty()) {
      complain("an exception needs a rule, a path and a reason");
    } else if (!exception.is_needed) {
      complain("nothing needs this exception any more: " + exception.rule + " " + exception.path);
    }
  }
  for (const Rule& rule : rules) {
    size_t count = 0;
    for (const Exception& exception : exceptions) {
      if (exception.rule != rule.name || ++count != rule.exceptions_max + 1) continue;
      violations.push_back(
          {"exceptions", std::string(kExceptionsPath), exception.line,
           "rule '" + exception.rule + "' allows " + std::to_string(rule.exceptions_max) + " exceptions at most"});
    }
  }
}

}  // namespace

void report(std::vector<Violation>& violations, std::string_view rule, const SourceFile& file, size_t line,
            std::string message) {
  violations.push_back({std::string(rule), file.path, static_cast<int>(line) + 1, std::move(message)});
}

std::vector<Violation> check_tree(const std::filesystem::path& root, std::string_view exceptions_text) {
  std::vector<Exception> exceptions = parse_exceptions(exceptions_text);
  const std::vector<Rule> rules = all_rules();
  std::vector<Violation> found;
  const std::vector<SourceFile> files = read_tree(root);
  check_whole(root, files, found);
  for (const SourceFile& file : files) {
    for (const Rule& rule : rules) rule.check(root, file, found);
  }
  std::vector<Violation> violations;
  for (Violation& violation : found) {
    bool is_excepted = false;
    for (Exception& exception : exceptions) {
      if (exception.rule != violation.rule || exception.path != violation.path) continue;
      exception.is_needed = true;
      is_excepted = true;
    }
    if (!is_excepted) violations.push_back(std::move(violation));
  }
  check_exceptions(exceptions, rules, violations);
  return violations;
}

}  // namespace torii::tidy
