// SPDX-License-Identifier: Apache-2.0
// The rule on the size of classes: a class that has more than a reader can hold is cut into parts.
#include <algorithm>
#include <array>

#include "tests/tidy/rules.hpp"

namespace torii::tidy {
namespace {

namespace fs = std::filesystem;

constexpr int kFunctions = 40;
constexpr int kData = 20;

/// Classes of these names, in any namespace, have no exceptions: exceptions.txt cannot name rule "core_class_size".
constexpr auto kCore = std::to_array<std::string_view>({"Execution", "Team"});

template <class List>
bool holds(const List& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

void check_class_size(const fs::path&, const SourceFile& file, std::vector<Violation>& violations) {
  if (file.kind != Kind::cpp || !file.is_header() || file.path.starts_with("tests/")) return;
  for (const ClassSize& size : class_sizes(file)) {
    if (!size.is_too_large()) continue;
    const std::string_view name = std::string_view(size.name).substr(size.name.rfind(':') + 1);
    report(violations, holds(kCore, name) ? "core_class_size" : "class_size", file, size.line,
           size.name + " has " + std::to_string(size.functions) + " member functions and " + std::to_string(size.data) +
               " data members; at most 40 and 20");
  }
}

constexpr size_t kExceptions = 5;

constexpr std::array kClassRules = {Rule{"class_size", check_class_size, kExceptions}};

}  // namespace

bool ClassSize::is_too_large() const { return functions > kFunctions || (functions > 0 && data > kData); }

std::span<const Rule> class_rules() { return kClassRules; }

}  // namespace torii::tidy
