// SPDX-License-Identifier: Apache-2.0
// Merges lengths and rank counts that one choice can serve.
#include "perf/tuning/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "perf/common/names.hpp"

namespace torii::perf {
namespace {

constexpr double kSpreadMax = 0.10;
constexpr double kEqual = 0.01;
/// On many ranks longer vectors take too many copies.
constexpr size_t kOneShotBytesMax = 2048;
/// Every pair of ranks has rings of slots: larger ones would use up the staging of a team of many ranks.
constexpr size_t kRingBytesMax = size_t{512} << 10;

bool is_for_many_ranks(const Choice& choice) {
  return choice.segment_bytes * static_cast<size_t>(choice.slots) <= kRingBytesMax;
}

using Points = std::vector<Point>;
using Choices = std::set<Choice>;

/// The choices that are as good as the best one at this point.
Choices good_choices(const PointResult& result, double within) {
  Choices good;
  std::vector<Measured> stayed = result.candidates;
  std::erase_if(stayed, [&](const Measured& one) { return one.rounds < result.rounds; });
  const auto fastest = std::min_element(stayed.begin(), stayed.end(),
                                        [](const Measured& a, const Measured& b) { return a.ratio < b.ratio; });
  for (const Measured& one : stayed) {
    const double noise = std::min(std::hypot(one.spread, fastest->spread), kSpreadMax);
    if (one.ratio <= fastest->ratio * (1 + std::max(within, noise))) good.insert(one.choice);
  }
  return good;
}

Choices common(const Choices& a, const Choices& b) {
  Choices both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(both, both.end()));
  return both;
}

double ratio_of(const PointResult& result, const Choice& choice) {
  for (const Measured& one : result.candidates) {
    if (one.choice == choice) return one.ratio;
  }
  return std::numeric_limits<double>::infinity();
}

/// One collective: its points by number of ranks and length.
class Merger {
 public:
  Merger(const Points& points, double within) {
    for (const Point& point : points) {
      Entry entry{point.result, good_choices(point.result, within)};
      for (const Choice& choice : entry.good) ++served_[choice];
      by_ranks_[point.ranks].push_back(std::move(entry));
    }
    for (auto& [ranks, entries] : by_ranks_) {
      std::sort(entries.begin(), entries.end(),
                [](const Entry& a, const Entry& b) { return a.result.bytes < b.result.bytes; });
    }
  }

  std::vector<TableRow> rows(torii_collective collective) const;

 private:
  struct Entry {
    PointResult result;
    Choices good;
  };
  using Entries = std::vector<Entry>;

  Choice fastest(const Entries& entries, size_t first, size_t last, const Choices& choices) const;
  std::optional<Choice> last_resort() const;
  static void add_row(TableRow row, int ranks, size_t bytes_before, std::vector<TableRow>& rows);
  static void merge_ranks(std::vector<TableRow>& rows);

  std::map<int, Entries> by_ranks_;
  std::map<Choice, int> served_;  ///< how many points the choice is good for
};

Choice Merger::fastest(const Entries& entries, size_t first, size_t last, const Choices& choices) const {
  std::map<Choice, double> means;
  double least = std::numeric_limits<double>::infinity();
  for (const Choice& choice : choices) {
    double logarithms = 0;
    for (size_t i = first; i < last; ++i) logarithms += std::log(ratio_of(entries[i].result, choice));
    means[choice] = std::exp(logarithms / static_cast<double>(last - first));
    least = std::min(least, means[choice]);
  }
  const auto key = [&](const auto& entry) {
    const bool is_equal = entry.second <= least * (1 + kEqual);
    return std::tuple(!is_equal, is_equal ? -served_.at(entry.first) : 0, entry.second);
  };
  return std::min_element(means.begin(), means.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); })
      ->first;
}

/// The fastest node at the greatest length of the most ranks, that needs no length to be right and suits many ranks.
std::optional<Choice> Merger::last_resort() const {
  const Measured* found = nullptr;
  for (const Measured& one : by_ranks_.rbegin()->second.back().result.candidates) {
    if (one.choice.algorithm != "node" || one.choice.one_shot || one.rounds == 0) continue;
    if (!is_for_many_ranks(one.choice)) continue;
    if (found == nullptr || one.ratio < found->ratio) found = &one;
  }
  return found == nullptr ? std::nullopt : std::optional(found->choice);
}

/// Large rings are trusted up to twice as many ranks as were measured.
/// One shot is for vectors that fit into a segment, and every rank takes a copy from every other: what was measured on
/// `ranks` ranks is trusted up to twice as many, beyond that for short vectors only. `bytes_before` is the last length
/// that another row serves.
void Merger::add_row(TableRow row, int ranks, size_t bytes_before, std::vector<TableRow>& rows) {
  if (!is_for_many_ranks(row.choice)) row.ranks_max = std::min(row.ranks_max, 2 * ranks);
  if (!row.choice.one_shot) return rows.push_back(row);
  const size_t parts = has_blocks(row.collective) ? static_cast<size_t>(ranks) : 1;
  row.bytes_max = std::min(row.bytes_max, row.choice.segment_bytes * parts);
  if (row.ranks_max > 2 * ranks && row.bytes_max > kOneShotBytesMax) {
    if (bytes_before < kOneShotBytesMax) {
      rows.push_back({row.collective, 2 * ranks + 1, row.ranks_max, kOneShotBytesMax, row.choice});
    }
    row.ranks_max = 2 * ranks;
  }
  rows.push_back(row);
}

/// Rows of neighbouring rank counts that say the same become one. Sorted by length, the rows of every count stay in
/// their order.
void Merger::merge_ranks(std::vector<TableRow>& rows) {
  std::sort(rows.begin(), rows.end(), [](const TableRow& a, const TableRow& b) {
    return std::tie(a.bytes_max, a.ranks_min) < std::tie(b.bytes_max, b.ranks_min);
  });
  std::vector<TableRow> merged;
  for (const TableRow& row : rows) {
    if (!merged.empty() && merged.back().bytes_max == row.bytes_max && merged.back().choice == row.choice &&
        merged.back().ranks_max + 1 == row.ranks_min) {
      merged.back().ranks_max = row.ranks_max;
    } else {
      merged.push_back(row);
    }
  }
  rows = std::move(merged);
}

std::vector<TableRow> Merger::rows(torii_collective collective) const {
  std::vector<TableRow> rows;
  int ranks_min = 1;
  for (const auto& [ranks, entries] : by_ranks_) {
    const int ranks_max = ranks == by_ranks_.rbegin()->first ? kAnyRanks : ranks;
    for (size_t first = 0; first < entries.size();) {
      Choices choices = entries[first].good;
      size_t last = first + 1;
      for (; last < entries.size(); ++last) {
        Choices still = common(choices, entries[last].good);
        if (still.empty()) break;
        choices = std::move(still);
      }
      const size_t bytes_max = last == entries.size() ? kAnyBytes : entries[last - 1].result.bytes;
      const size_t bytes_before = first == 0 ? 0 : entries[first - 1].result.bytes;
      add_row({collective, ranks_min, ranks_max, bytes_max, fastest(entries, first, last, choices)}, ranks,
              bytes_before, rows);
      first = last;
    }
    ranks_min = ranks + 1;
  }
  merge_ranks(rows);
  const std::optional<Choice> resort = last_resort();
  std::erase_if(rows, [&](const TableRow& row) { return row.bytes_max == kAnyBytes && row.choice == resort; });
  if (resort) rows.push_back({collective, 1, kAnyRanks, kAnyBytes, *resort});
  return rows;
}

}  // namespace

const Measured& best_of(const PointResult& result) {
  const Measured* best = &result.table;
  for (const Measured& one : result.candidates) {
    if (one.rounds == result.rounds && one.ratio < best->ratio) best = &one;
  }
  return *best;
}

void add_pass(PointResult& all, const PointResult& pass) {
  const double weight = 1.0 / ++all.passes;
  const auto mean = [&](double& value, double other) { value = std::pow(value, 1 - weight) * std::pow(other, weight); };
  const auto add = [&](Measured& one, const Measured& other) {
    mean(one.malloc_us, other.malloc_us);
    mean(one.allocated_us, other.allocated_us);
    mean(one.ratio, other.ratio);
    one.spread = std::max(one.spread, other.spread);
    one.rounds += other.rounds;
  };
  add(all.table, pass.table);
  // Those that stayed longest stay: there may be nobody who did in every pass.
  all.rounds = 0;
  for (Measured& one : all.candidates) {
    const auto same = std::find_if(pass.candidates.begin(), pass.candidates.end(),
                                   [&](const Measured& other) { return other.choice == one.choice; });
    if (same != pass.candidates.end()) add(one, *same);
    all.rounds = std::max(all.rounds, one.rounds);
  }
}

std::vector<TableRow> make_rows(std::vector<Point> points, double within) {
  std::map<torii_collective, Points> by_collective;
  for (Point& point : points) {
    if (!point.result.candidates.empty()) by_collective[point.collective].push_back(std::move(point));
  }
  std::vector<TableRow> rows;
  for (const auto& [collective, own] : by_collective) {
    const std::vector<TableRow> more = Merger(own, within).rows(collective);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

const TableRow* find_row(const std::vector<TableRow>& rows, torii_collective collective, int ranks, size_t bytes) {
  for (const TableRow& row : rows) {
    if (row.collective == collective && ranks >= row.ranks_min && ranks <= row.ranks_max && bytes <= row.bytes_max) {
      return &row;
    }
  }
  return nullptr;
}

std::string to_json_text(const std::vector<TableRow>& rows, const std::string& measured) {
  std::string text = fmt::format("{{\n  \"version\": 1,\n  \"measured\": {},\n  \"rows\": [\n", measured);
  for (size_t i = 0; i < rows.size(); ++i) {
    const TableRow& row = rows[i];
    const std::string bytes_max = row.bytes_max == kAnyBytes ? "null" : std::to_string(row.bytes_max);
    text += fmt::format(R"(    {{"collective": "{}", "ranks": [{}, {}], "bytes_max": {}, "algorithm": "{}", )",
                        name(row.collective), row.ranks_min, row.ranks_max, bytes_max, row.choice.algorithm);
    text += fmt::format(R"("segment": {}, "slots": {}, "window": {}{}}}{})", row.choice.segment_bytes, row.choice.slots,
                        row.choice.window, row.choice.one_shot ? R"(, "one_shot": true)" : "",
                        i + 1 < rows.size() ? ",\n" : "\n");
  }
  return text + "  ]\n}\n";
}

}  // namespace torii::perf
