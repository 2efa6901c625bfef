// SPDX-License-Identifier: Apache-2.0
// Rules about lines and words, for sources, scripts and prose alike.
// REUSE-IgnoreStart: the licence lines below are data.
#include <algorithm>
#include <array>
#include <cctype>

#include "tests/tidy/rules.hpp"

namespace torii::tidy {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLineColumns = 120;
constexpr size_t kFileLines = 400;
constexpr size_t kScriptLines = 500;

constexpr auto kUnfinished = std::to_array<std::string_view>({"TODO", "FIXME", "XXX", "HACK"});

/// The folders that every machine has. Any other absolute path belongs to somebody's machine.
constexpr auto kSystemFolders =
    std::to_array<std::string_view>({"bin", "dev", "etc", "lib", "proc", "run", "sys", "usr", "var"});

/// One word per thing (docs/design.md, vocabulary). Matched inside identifiers too.
struct Synonym {
  std::string_view word;
  std::string_view instead;
  std::array<std::string_view, 2> owners;  ///< path prefixes where the word belongs to somebody else; may be empty
};
constexpr auto kSynonyms = std::to_array<Synonym>({
    {"endpoint", "engine", {"transports/libfabric/", "transports/ucx/"}},
    {"communicator", "team", {"plugins/", "perf/"}},
    {"chunk", "segment", {}},
    {"mailbox", "slot", {}},
});

/// Names that said too little, and have given way to others. Matched as whole identifiers, in code alone.
constexpr auto kDeadNames = std::to_array<std::string_view>(
    {"Absences",  "Chronicle",  "Deed",      "Door",     "Fate",      "JoinOffer",      "Leftovers", "Letterbox",
     "Letters",   "RoundOffer", "Standing",  "Ticket",   "Unsettled", "WireManner",     "by_model",  "enter_again",
     "last_told", "meet_fate",  "next_told", "owes_end", "told_by",   "words_have_left"});

bool holds_word(std::string_view line, std::string_view word) {
  for (size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_word_character(line[at - 1])) && (end == line.size() || !is_word_character(line[end])))
      return true;
  }
  return false;
}

/// Columns as a reader counts them: bytes that continue a UTF-8 character take none.
size_t columns(std::string_view line) {
  return static_cast<size_t>(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

bool is_source(const SourceFile& file) { return file.kind == Kind::cpp || file.kind == Kind::script; }

void check_licence(const fs::path&, const SourceFile& file, std::vector<Violation>& violations) {
  if (!is_source(file)) return;
  const size_t first = !file.lines.empty() && file.lines[0].starts_with("#!") ? 1 : 0;
  const auto line = [&](size_t at) { return at < file.lines.size() ? std::string_view(file.lines[at]) : ""; };
  if (line(first).find("SPDX-License-Identifier: Apache-2.0") == std::string_view::npos) {
    report(violations, "licence", file, first, "the file must start with its SPDX line");
    return;
  }
  const std::string_view about = line(first + 1);
  const bool is_comment = about.starts_with("// ") || about.starts_with("# ") || about.starts_with(" * ");
  if (!is_comment) report(violations, "licence", file, first + 1, "after the SPDX line say what the file is");
}

/// Whether a line of Markdown, without its indent, could be two: it has a space outside of inline code and of links,
/// and is no row of a table and no heading.
bool can_be_broken(std::string_view line) {
  if (line.starts_with('|') || line.starts_with('#')) return false;
  size_t at = std::min(line.find_first_not_of("0123456789"), line.size());  // behind the mark of a list
  if (at == 0 ? line.find_first_of("-*+") == 0 : line.find_first_of(".)", at) == at) ++at;
  if (at < line.size() && line[at] == ' ') ++at;
  for (; at < line.size(); ++at) {
    if (line[at] == ' ') return true;
    size_t end = std::string_view::npos;
    if (line[at] == '`') {
      const size_t marks = std::min(line.find_first_not_of('`', at), line.size()) - at;
      end = line.find(line.substr(at, marks), at + marks);
      if (end != std::string_view::npos) end += marks - 1;
    } else if (line[at] == '[') {
      const size_t text_end = std::min(line.find(']', at), line.size());
      if (line.substr(text_end).starts_with("](")) end = line.find(')', text_end);
    }
    if (end != std::string_view::npos) at = end;
  }
  return false;
}

void check_line_length(const fs::path&, const SourceFile& file, std::vector<Violation>& violations) {
  if (file.kind == Kind::other) return;
  bool in_code = false;
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    if (file.kind == Kind::prose) {
      const std::string_view text = std::string_view(line).substr(std::min(line.find_first_not_of(' '), line.size()));
      if (text.starts_with("```")) in_code = !in_code;
      if (in_code || !can_be_broken(text)) continue;
    }
    if (columns(line) > kLineColumns) {
      report(violations, "line_length", file, i, std::to_string(columns(line)) + " columns; at most 120");
    }
  }
}

void check_file_length(const fs::path&, const SourceFile& file, std::vector<Violation>& violations) {
  const size_t most = file.kind == Kind::cpp ? kFileLines : kScriptLines;
  if (is_source(file) && file.lines.size() > most) {
    report(violations, "file_length", file, most,
           std::to_string(file.lines.size()) + " lines; at most " + std::to_string(most));
  }
}

void check_white_space(const fs::path&, const SourceFile& file, std::vector<Violation>& violations) {
  if (file.kind == Kind::other) return;
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    if (line.find('\t') != std::string::npos) report(violations, "white_space", file, i, "a tab");
    if (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0) {
      report(violations, "white_space", file, i, "white space at the end of the line");
    }
  }
  if (!file.ends_with_newline)
    report(violations, "white_space", file, file.lines.size() - 1, "no line break at the end");
}

void check_unfinished(const fs::path&, const SourceFile& file, std::vector<Violation>& violations) {
  if (file.kind == Kind::other) return;
  for (size_t i = 0; i < file.lines.size(); ++i) {
    for (const std::string_view word : kUnfinished) {
      if (holds_word(file.lines[i], word)) {
        report(violations, "unfinished", file, i, std::string(word) + ": finish it, or open an issue");
      }
    }
  }
}

/// Whether `path`, written in a file of the project, leads somewhere that only one machine has: an absolute path with
/// at least two parts outside the system's folders, or a relative one that climbs out of the project.
bool leaves_project(const SourceFile& file, std::string_view path) {
  if (path.starts_with("../")) {
    const fs::path target = (fs::path(file.path).parent_path() / path).lexically_normal();
    return target.begin() != target.end() && *target.begin() == "..";
  }
  const size_t end = path.find('/', 1);
  if (end == std::string_view::npos || end == 1) return false;
  const std::string_view first = path.substr(1, end - 1);
  return std::all_of(first.begin(), first.end(), is_word_character) && path.size() > end + 1 &&
         is_word_character(path[end + 1]) &&
         std::find(kSystemFolders.begin(), kSystemFolders.end(), first) == kSystemFolders.end();
}

void check_machine_path(const fs::path&, const SourceFile& file, std::vector<Violation>& violations) {
  constexpr std::string_view kBefore = " \"'`(=<,:";  // what a path may stand after
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const std::string_view line = file.lines[i];
    for (size_t at = 0; at < line.size(); ++at) {
      if (line[at] != '/' && line.substr(at, 3) != "../") continue;
      if (at > 0 && kBefore.find(line[at - 1]) == std::string_view::npos) continue;
      const std::string_view path = line.substr(at, line.find_first_of(" \"'`)>,;", at) - at);
      if (leaves_project(file, path)) {
        report(violations, "machine_path", file, i, std::string(path) + " exists on one machine only");
      }
    }
  }
}

void check_vocabulary(const fs::path&, const SourceFile& file, std::vector<Violation>& violations) {
  if (!is_source(file)) return;
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const std::string line = lower(file.lines[i]);
    for (const Synonym& synonym : kSynonyms) {
      const bool is_allowed = std::any_of(synonym.owners.begin(), synonym.owners.end(), [&](std::string_view folder) {
        return !folder.empty() && file.path.starts_with(folder);
      });
      if (!is_allowed && line.find(synonym.word) != std::string::npos) {
        report(violations, "vocabulary", file, i,
               std::string(synonym.word) + ": the word here is " + std::string(synonym.instead));
      }
    }
  }
}

void check_dead_names(const fs::path&, const SourceFile& file, std::vector<Violation>& violations) {
  if (file.kind != Kind::cpp || file.path.starts_with("tests/tidy/")) return;
  for (size_t i = 0; i < file.code.size(); ++i) {
    for (const std::string_view name : kDeadNames) {
      if (!holds_word(file.code[i], name)) continue;
      report(violations, "dead_names", file, i, std::string(name) + " has another name now (git log -S finds it)");
    }
  }
}

constexpr std::array kTextRules = {
    Rule{"licence", check_licence},         Rule{"line_length", check_line_length},
    Rule{"file_length", check_file_length}, Rule{"white_space", check_white_space},
    Rule{"unfinished", check_unfinished},   Rule{"machine_path", check_machine_path},
    Rule{"vocabulary", check_vocabulary},   Rule{"dead_names", check_dead_names},
};

}  // namespace

std::span<const Rule> text_rules() { return kTextRules; }

}  // namespace torii::tidy
