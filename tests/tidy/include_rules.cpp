// SPDX-License-Identifier: Apache-2.0
// The include law, on two levels: reduce_kernels < runtime < collectives | transports < api < tools, perf, plugins,
// python, examples, tests; and the folders within runtime, collectives, transports and api (kSubfolders).
// The files of plugins/openmpi have an order of their own.
#include <algorithm>
#include <array>
#include <optional>

#include "tests/tidy/rules.hpp"

namespace torii::tidy {
namespace {

namespace fs = std::filesystem;

/// A folder may include from itself and from folders of a lower level; `sees_inside`, false for what stands on
/// include/torii only, and `sees_public`, whether <torii/...> may be included at all.
struct Folder {
  std::string_view name;
  int level;
  bool sees_inside;
  bool sees_public;
};
constexpr std::array kFolders = {
    Folder{"include", 0, false, true},     Folder{"reduce_kernels", 0, true, false}, Folder{"runtime", 1, true, false},
    Folder{"collectives", 2, true, false}, Folder{"transports", 2, true, false},     Folder{"api", 3, true, true},
    Folder{"plugins", 4, false, true},     Folder{"examples", 4, false, true},       Folder{"perf", 4, false, true},
    Folder{"python", 4, false, true},      Folder{"tools", 4, true, true},           Folder{"tests", 5, true, true},
};
// What perf may include of the inside, as the beginning of a path: helpers that know no communication, and for the
// benchmarks that measure below the public interface what they measure.
struct Reached {
  std::string_view folder;
  std::string_view target;
};
constexpr std::array kReached = {
    Reached{"perf/", "runtime/base/numbers.hpp"},     Reached{"perf/", "runtime/base/output.hpp"},
    Reached{"perf/", "runtime/base/excerpt.hpp"},     Reached{"perf/", "runtime/base/text_file.hpp"},
    Reached{"perf/", "collectives/drawing/axes.hpp"}, Reached{"perf/", "tools/collective_shape.hpp"},
    Reached{"perf/", "tools/command_line.hpp"},       Reached{"perf/kernels/", "reduce_kernels/"},
    Reached{"perf/limits/", "reduce_kernels/"},       Reached{"perf/limits/", "runtime/base/descriptor.hpp"},
    Reached{"perf/limits/", "runtime/devices/"},      Reached{"perf/transports/", "runtime/"},
    Reached{"perf/transports/", "transports/"}};

/// The folders within a folder: each may include itself and those of a lower level.
struct Subfolder {
  std::string_view folder;
  std::string_view name;
  int level;
};
constexpr auto kSubfolders = std::to_array<Subfolder>({
    {"runtime", "base", 0},
    {"runtime", "topology", 1},
    {"runtime", "plan", 2},
    {"runtime", "devices", 3},
    {"runtime", "bootstrap", 4},
    {"runtime", "fabric", 5},
    {"runtime", "rings", 6},
    {"runtime", "execution", 7},
    {"runtime", "point_to_point", 8},
    {"collectives", "trees", 0},
    {"collectives", "orders", 0},
    {"collectives", "schedules", 0},
    {"collectives", "building", 1},
    {"collectives", "algorithms", 2},
    {"collectives", "selection", 3},
    {"collectives", "proof", 4},
    {"collectives", "drawing", 4},
    {"transports", "shared_memory", 0},
    {"transports", "network", 0},
    {"transports", "simulated", 0},
    {"transports", "libfabric", 1},
    {"transports", "ucx", 1},
    {"transports", "mixed", 1},
    {"transports", "fibers", 2},
    {"api", "context", 0},
    {"api", "agreement", 1},
    {"api", "calls", 2},
    {"api", "installation", 3},
    {"api", "running", 4},
    {"api", "team", 5},
    {"api", "redistribution", 6},
    {"api", "c", 7},
});
/// The last folder of runtime that a folder may see.
struct Limit {
  std::string_view folder;
  int level;
  std::string_view rule, reason;
};
constexpr Limit kCollectives = {"collectives/", 2, "pure_collectives",
                                "what computes, chooses or proves a plan is arithmetic; it must not see "};
constexpr Limit kTransports = {"transports/", 5, "blind_transports",
                               "a transport does not know what it carries; it must not see "};

/// The files of plugins/openmpi, lowest first, without what all names begin with. coll_torii_openmpi.h says what the
/// layers are.
constexpr std::string_view kOpenMpiBegin = "plugins/openmpi/coll_torii_";
constexpr std::string_view kOpenMpiOrder[] = {"openmpi",
                                              "operations",
                                              "state",
                                              "report",
                                              "elements",
                                              "call",
                                              "reduction",
                                              "access",
                                              "describe",
                                              "describe_reductions",
                                              "describe_unequal",
                                              "staging",
                                              "module",
                                              "delay",
                                              "attach",
                                              "request",
                                              "slots",
                                              "blocking",
                                              "non_blocking",
                                              "persistent",
                                              "component"};

/// Libraries that must not reach an embedder; headers with a folder in their name are refused without a list.
constexpr auto kPrivateHeaders =
    std::to_array<std::string_view>({"hwloc.h", "sodium.h", "xxhash.h", "mpi.h", "pmix.h"});

std::optional<Folder> folder_of(std::string_view path) {
  const std::string_view name = path.substr(0, path.find('/'));
  const auto found = std::find_if(kFolders.begin(), kFolders.end(), [&](const auto& f) { return f.name == name; });
  return found == kFolders.end() || name.size() == path.size() ? std::nullopt : std::optional(*found);
}

void check_resolves(const fs::path& root, const SourceFile& file, std::vector<Violation>& violations) {
  for (const Include& include : includes_of(file)) {
    if (include.quoted && !fs::is_regular_file(root / include.target)) {
      report(violations, "include_from_root", file, include.line, include.target + " does not exist under the root");
    }
    if (include.quoted) continue;
    const auto folder = folder_of(include.target);
    if (folder && fs::is_regular_file(root / include.target)) {
      report(violations, "include_from_root", file, include.line, include.target + " is ours: write it in quotes");
    }
    if (include.target.starts_with("torii/") && !fs::is_regular_file(root / "include" / include.target)) {
      report(violations, "include_from_root", file, include.line, include.target + " does not exist under include");
    }
  }
}

void check_law(const fs::path&, const SourceFile& file, std::vector<Violation>& violations) {
  const auto own = folder_of(file.path);
  if (!own) return;
  for (const Include& include : includes_of(file)) {
    if (!include.quoted) {
      if (include.target.starts_with("torii/") && !own->sees_public) {
        report(violations, "include_law", file, include.line,
               std::string(own->name) + " is below the public interface and must not include it");
      }
      continue;
    }
    const auto target = folder_of(include.target);
    if (!target || target->name == own->name) continue;
    const bool is_reached = std::any_of(kReached.begin(), kReached.end(), [&](const Reached& one) {
      return file.path.starts_with(one.folder) && include.target.starts_with(one.target);
    });
    if (is_reached) continue;
    if (target->level >= own->level || target->name == "include" || !own->sees_inside) {
      report(violations, "include_law", file, include.line,
             std::string(own->name) + " must not include " + include.target + " (docs/contributing.md, the law)");
    }
  }
}

const Subfolder* subfolder_of(std::string_view path) {
  const auto found = std::find_if(kSubfolders.begin(), kSubfolders.end(), [&](const Subfolder& one) {
    return path.starts_with(std::string(one.folder) + "/" + std::string(one.name) + "/");
  });
  return found == kSubfolders.end() ? nullptr : &*found;
}

bool has_subfolders(std::string_view folder) {
  return std::any_of(kSubfolders.begin(), kSubfolders.end(),
                     [&](const Subfolder& one) { return one.folder == folder; });
}

void check_inner_law(const fs::path&, const SourceFile& file, std::vector<Violation>& violations) {
  const auto folder = folder_of(file.path);
  if (file.kind != Kind::cpp || !folder || !has_subfolders(folder->name)) return;
  const Subfolder* const own = subfolder_of(file.path);
  if (own == nullptr) {
    report(violations, "inner_law", file, 0,
           "its folder is none of those of " + std::string(folder->name) +
               " that the law knows: kSubfolders in tests/tidy/include_rules.cpp, and docs/contributing.md");
    return;
  }
  for (const Include& include : includes_of(file)) {
    const Subfolder* const target = include.quoted ? subfolder_of(include.target) : nullptr;
    if (target == nullptr || target->folder != own->folder || target == own || target->level < own->level) continue;
    report(violations, "inner_law", file, include.line,
           std::string(own->folder) + "/" + std::string(own->name) + " must not include " + include.target +
               " (docs/contributing.md, the law)");
  }
}

template <const Limit& limit>
void check_limit(const fs::path&, const SourceFile& file, std::vector<Violation>& violations) {
  if (!file.path.starts_with(limit.folder)) return;
  for (const Include& include : includes_of(file)) {
    const Subfolder* const target = include.quoted ? subfolder_of(include.target) : nullptr;
    if (target == nullptr || target->folder != "runtime" || target->level <= limit.level) continue;
    report(violations, limit.rule, file, include.line, std::string(limit.reason) + include.target);
  }
}

/// The place of a file of plugins/openmpi in kOpenMpiOrder; its size if the file has none.
size_t openmpi_place(std::string_view path) {
  if (!path.starts_with(kOpenMpiBegin)) return std::size(kOpenMpiOrder);
  const std::string_view name = path.substr(kOpenMpiBegin.size(), path.rfind('.') - kOpenMpiBegin.size());
  const auto* const found = std::find(std::begin(kOpenMpiOrder), std::end(kOpenMpiOrder), name);
  return static_cast<size_t>(found - std::begin(kOpenMpiOrder));
}

/// A file of plugins/openmpi includes its own header and those of earlier files, so calls between files have no circle.
void check_openmpi_order(const fs::path&, const SourceFile& file, std::vector<Violation>& violations) {
  constexpr std::string_view kFolder = "plugins/openmpi/";
  if (file.kind != Kind::cpp || !file.path.starts_with(kFolder)) return;
  if (file.path.find('/', kFolder.size()) != std::string::npos) return;
  const size_t own = openmpi_place(file.path);
  if (own == std::size(kOpenMpiOrder)) {
    report(violations, "openmpi_order", file, 0,
           "the file has no place in kOpenMpiOrder (tests/tidy/include_rules.cpp)");
    return;
  }
  for (const Include& include : includes_of(file)) {
    if (!include.quoted || !include.target.starts_with(kFolder) || openmpi_place(include.target) <= own) continue;
    report(violations, "openmpi_order", file, include.line,
           include.target + " is of a later file (kOpenMpiOrder in tests/tidy/include_rules.cpp)");
  }
}

/// The source file of a header's name shows that the header needs nothing before it.
void check_own_header(const fs::path& root, const SourceFile& file, std::vector<Violation>& violations) {
  const fs::path source = file.path;
  if (source.extension() != ".cpp" && source.extension() != ".c") return;
  const std::string header = fs::path(source).replace_extension(source.extension() == ".c" ? ".h" : ".hpp").string();
  if (!fs::is_regular_file(root / header)) return;
  const std::vector<Include> includes = includes_of(file);
  if (includes.empty() || includes.front().target != header) {
    report(violations, "own_header_first", file, includes.empty() ? 0 : includes.front().line,
           "include " + header + " before anything else");
  }
}

void check_embedder(const fs::path&, const SourceFile& file, std::vector<Violation>& violations) {
  if (!file.path.starts_with("include/")) return;
  for (const Include& include : includes_of(file)) {
    const bool is_ours = include.target.starts_with("torii/");
    const bool is_private =
        include.target.find('/') != std::string::npos ||
        std::find(kPrivateHeaders.begin(), kPrivateHeaders.end(), include.target) != kPrivateHeaders.end();
    if (include.quoted || (is_private && !is_ours)) {
      report(violations, "embedder_headers", file, include.line,
             "only <torii/...> and standard headers reach an embedder");
    }
  }
}

/// Its templates take seconds to compile.
void check_one_parser(const fs::path&, const SourceFile& file, std::vector<Violation>& violations) {
  constexpr std::string_view kParser = "tools/command_line.cpp";
  if (file.path == kParser) return;
  for (const Include& include : includes_of(file)) {
    if (include.quoted || !include.target.starts_with("CLI/")) continue;
    report(violations, "one_parser", file, include.line,
           "only " + std::string(kParser) + " includes CLI11; use its header");
  }
}

constexpr std::array kIncludeRules = {
    Rule{"include_from_root", check_resolves},
    Rule{"include_law", check_law},
    Rule{"inner_law", check_inner_law},
    Rule{"pure_collectives", check_limit<kCollectives>},
    Rule{"blind_transports", check_limit<kTransports>},
    Rule{"embedder_headers", check_embedder},
    Rule{"own_header_first", check_own_header},
    Rule{"openmpi_order", check_openmpi_order},
    Rule{"one_parser", check_one_parser},
};

}  // namespace

std::vector<Include> includes_of(const SourceFile& file) {
  std::vector<Include> includes;
  if (file.kind != Kind::cpp) return includes;
  for (size_t i = 0; i < file.lines.size(); ++i) {
    // `code` tells a directive from its mention in a comment or a literal, `lines` still has the name.
    const std::string& code = file.code[i];
    const size_t hash = code.find_first_not_of(' ');
    if (hash == std::string::npos || code[hash] != '#') continue;
    const size_t word = code.find_first_not_of(' ', hash + 1);
    if (word == std::string::npos || code.compare(word, 7, "include") != 0) continue;
    const std::string& line = file.lines[i];
    const size_t open = line.find_first_of("\"<", word);
    if (open == std::string::npos) continue;
    const size_t close = line.find(line[open] == '"' ? '"' : '>', open + 1);
    if (close == std::string::npos) continue;
    includes.push_back({i, line.substr(open + 1, close - open - 1), line[open] == '"'});
  }
  return includes;
}

std::span<const Rule> include_rules() { return kIncludeRules; }

}  // namespace torii::tidy
