// SPDX-License-Identifier: Apache-2.0
// Expressions: equal ones have equal numbers, folds nest to the left, and the canonical order is its definition.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/plan/expression.hpp"

namespace torii::tests {
namespace {

std::vector<ExpressionId> leaves(ExpressionPool& pool, int ranks) {
  std::vector<ExpressionId> result;
  for (int rank = 0; rank < ranks; ++rank) result.push_back(pool.leaf(rank));
  return result;
}

/// E(lo, hi) as docs/design.md writes it: m is lo plus the largest power of two below hi - lo.
std::string canonical_text(int lo, int hi) {
  if (hi - lo == 1) return std::to_string(lo);
  int power = 1;
  while (2 * power < hi - lo) power *= 2;
  return "(" + canonical_text(lo, lo + power) + " " + canonical_text(lo + power, hi) + ")";
}

TEST(Expression, CanonicalIsItsRecursiveDefinition) {
  ExpressionPool pool;
  for (int ranks = 1; ranks <= 70; ++ranks) {
    const ExpressionId id = pool.canonical(leaves(pool, ranks), true);
    ASSERT_EQ(pool.text(id, 10000), canonical_text(0, ranks));
    ASSERT_EQ(pool.occurrences(id, ranks), std::vector<int>(static_cast<std::size_t>(ranks), 1));
  }
  EXPECT_EQ(pool.text(pool.canonical(leaves(pool, 5), true)), "(((0 1) (2 3)) 4)");
  EXPECT_EQ(pool.text(pool.canonical(leaves(pool, 7), true)), "(((0 1) (2 3)) ((4 5) 6))");
}

TEST(Expression, FoldNestsToTheLeft) {
  ExpressionPool pool;
  EXPECT_EQ(pool.text(pool.fold(leaves(pool, 4), true)), "(((0 1) 2) 3)");
  EXPECT_EQ(pool.fold(leaves(pool, 1), true), pool.leaf(0));
  EXPECT_EQ(pool.fold(leaves(pool, 3), true), pool.fold(leaves(pool, 3), true));
  EXPECT_NE(pool.fold(leaves(pool, 4), true), pool.canonical(leaves(pool, 4), true));
  EXPECT_EQ(pool.fold(leaves(pool, 3), true), pool.canonical(leaves(pool, 3), true));
}

TEST(Expression, OnlyTheOutermostFoldOfAFlowIsRounded) {
  ExpressionPool pool;
  for (const ExpressionId id : {pool.fold(leaves(pool, 4), true), pool.canonical(leaves(pool, 4), true)}) {
    EXPECT_TRUE(pool.node(id).rounded);
    EXPECT_FALSE(pool.node(pool.node(id).left).rounded);
  }
  const ExpressionId wide = pool.fold(leaves(pool, 4), false);
  EXPECT_FALSE(pool.node(wide).rounded);
  EXPECT_EQ(pool.rounded(wide), pool.fold(leaves(pool, 4), true));
  EXPECT_EQ(pool.rounded(pool.rounded(wide)), pool.rounded(wide));
}

TEST(Expression, WhereAValueIsRoundedTellsExpressionsApart) {
  ExpressionPool pool;
  const std::vector<ExpressionId> operands = leaves(pool, 3);
  const ExpressionId sent_narrow[] = {pool.fold(std::vector{operands[0], operands[1]}, true), operands[2]};
  const ExpressionId sent_wide[] = {pool.fold(std::vector{operands[0], operands[1]}, false), operands[2]};
  EXPECT_NE(pool.fold(sent_narrow, true), pool.fold(sent_wide, true));
  EXPECT_EQ(pool.fold(sent_wide, true), pool.fold(operands, true));
}

TEST(Expression, OrderOfOperandsTellsExpressionsApart) {
  ExpressionPool pool;
  const ExpressionId up[] = {pool.leaf(0), pool.leaf(1)};
  const ExpressionId down[] = {pool.leaf(1), pool.leaf(0)};
  EXPECT_NE(pool.fold(up, true), pool.fold(down, true));
}

TEST(Expression, OccurrencesCountEveryUse) {
  ExpressionPool pool;
  const ExpressionId pair[] = {pool.leaf(2), pool.leaf(0)};
  const ExpressionId folded = pool.fold(pair, false);
  const ExpressionId twice[] = {folded, pool.leaf(2), folded};
  EXPECT_EQ(pool.occurrences(pool.fold(twice, true), 4), (std::vector{2, 0, 3, 0}));
  EXPECT_EQ(pool.occurrences(pool.leaf(1), 2), (std::vector{0, 1}));
}

TEST(Expression, TextIsCutToTheLengthAsked) {
  ExpressionPool pool;
  const ExpressionId id = pool.fold(leaves(pool, 1000), true);
  for (const std::size_t most : {std::size_t{0}, std::size_t{2}, std::size_t{50}, std::size_t{200}}) {
    EXPECT_EQ(pool.text(id, most).size(), most);
  }
  EXPECT_EQ(pool.text(id, 50).substr(47), "...");
  EXPECT_EQ(pool.text(pool.fold(leaves(pool, 2), true), 5), "(0 1)");
}

}  // namespace
}  // namespace torii::tests
