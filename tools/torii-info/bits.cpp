// SPDX-License-Identifier: Apache-2.0
// Prints the expression and its parts.
#include "tools/torii-info/bits.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "collectives/building/plan_builder.hpp"
#include "runtime/base/status.hpp"
#include "tools/leaf_intervals.hpp"
#include "tools/torii-info/report.hpp"

namespace torii::tools {
namespace {

constexpr std::size_t kCharacters = 400;
constexpr std::size_t kCharactersJson = 100'000;
constexpr int kRowsShownMost = 64;

ExpressionId expression_of(ExpressionPool& pool, std::size_t first, std::size_t count) {
  std::vector<ExpressionId> leaves;
  for (std::size_t leaf = first; leaf < first + count; ++leaf) leaves.push_back(pool.leaf(static_cast<int>(leaf)));
  return pool.canonical(leaves, true);
}

std::string interval_text(const LeafIntervals& leaves, int rank) {
  const std::size_t first = leaves.first(rank);
  const std::size_t count = leaves.count(rank);
  if (count == 0) return "no leaves";
  return count == 1 ? fmt::format("leaf {}", first) : fmt::format("leaves {} to {}", first, first + count - 1);
}

/// "leaves 0 to 2, operands (0 1), 2".
std::string rank_text(const LeafIntervals& leaves, int rank, ExpressionPool& pool) {
  std::string text = interval_text(leaves, rank);
  const char* before = leaves.operands(rank) == 1 ? "; operand " : "; operands ";
  for (const LeafSubtree& one : leaves.subtrees_of(rank)) {
    text += std::exchange(before, ", ") + pool.text(expression_of(pool, one.first, one.count));
  }
  return text;
}

Json rank_json(const LeafIntervals& leaves, int rank, ExpressionPool& pool) {
  Json json = {
      {"rank", rank}, {"first", leaves.first(rank)}, {"count", leaves.count(rank)}, {"operands", Json::array()}};
  for (const LeafSubtree& one : leaves.subtrees_of(rank)) {
    json["operands"].push_back({{"first", one.first},
                                {"count", one.count},
                                {"expression", pool.text(expression_of(pool, one.first, one.count), kCharactersJson)}});
  }
  return json;
}

}  // namespace

Report bits(const BitsQuestion& question) {
  if (!question.leaves) invalid("--leaves is missing; give a number of leaves, or a list such as 3,0,4");
  const LeafIntervals leaves = read_intervals(*question.leaves, question.ranks);
  ExpressionPool pool;
  const ExpressionId all = expression_of(pool, 0, leaves.leaves());
  Report report;
  report.text = row<12>("leaves", fmt::format("{} on {} ranks", leaves.leaves(), leaves.ranks()));
  report.text += row<12>("expression", pool.text(all, kCharacters));
  report.text += row<12>("", "a number is that leaf's vector, (a b) is a op b");
  report.json = {{"leaves", leaves.leaves()},
                 {"expression", pool.text(all, kCharactersJson)},
                 {"operands", leaves.subtrees().size()},
                 {"plan", leaves.is_one_subtree_each() ? "canonical" : "leaves"},
                 {"ranks", Json::array()}};
  for (int rank = 0; rank < leaves.ranks(); ++rank) {
    report.json["ranks"].push_back(rank_json(leaves, rank, pool));
    if (rank < kRowsShownMost) report.text += row<12>(fmt::format("rank {}", rank), rank_text(leaves, rank, pool));
  }
  if (leaves.ranks() > kRowsShownMost) {
    report.text += row<12>("", fmt::format("... and {} more (--json has all)", leaves.ranks() - kRowsShownMost));
  }
  report.text +=
      row<12>("plan", leaves.is_one_subtree_each()
                          ? "that of a canonical call without leaves: one operand per rank"
                          : fmt::format("node (allreduce, reduce, reduce_scatter) or binomial (allreduce, reduce) "
                                        "with {} operands",
                                        leaves.subtrees().size()));
  return report;
}

}  // namespace torii::tools
