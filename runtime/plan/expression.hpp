// SPDX-License-Identifier: Apache-2.0
// The expression an algorithm computes for an element: leaves are ranks' operands, nodes are folds. Hash-consed, so
// equal expressions have equal ids.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace torii {

using ExpressionId = std::int32_t;
inline constexpr ExpressionId kNoExpression = -1;

/// A leaf (one rank's operand, already of the vector's type) or a two-operand fold. A flow's left fold of n operands is
/// the nest ((s0 s1) s2)... 16-bit floats are folded in float, so only the outermost fold of a flow is `rounded` to the
/// vector's type. If the value travels wide, not even that fold is rounded. Types that have no wide form ignore the
/// flag.
struct ExpressionNode {
  int leaf_rank = -1;  ///< >= 0: the operand of that rank; then left and right are kNoExpression
  ExpressionId left = kNoExpression;
  ExpressionId right = kNoExpression;
  bool rounded = true;
  auto operator<=>(const ExpressionNode&) const = default;  // NOLINT(modernize-use-nullptr): misread by clang-tidy 14
};

class ExpressionPool {
 public:
  ExpressionId leaf(int rank);
  /// The left fold of `operands` (at least one); one operand gives that operand back, rounded when asked.
  ExpressionId fold(std::span<const ExpressionId> operands, bool rounded);
  /// The same value of a wide (unrounded) expression rounded to the vector's type.
  ExpressionId rounded(ExpressionId id);
  /// E(lo,hi) over `operands` (docs/design.md, "Determinism"), rounded at the outermost only when `rounded`.
  ExpressionId canonical(std::span<const ExpressionId> operands, bool rounded);

  const ExpressionNode& node(ExpressionId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  /// How often each rank's operand occurs in `id` (index: rank; length `ranks`).
  std::vector<int> occurrences(ExpressionId id, int ranks) const;
  /// For messages: "((0 1) 2)", at most `most_characters` long.
  std::string text(ExpressionId id, std::size_t most_characters = 200) const;

 private:
  ExpressionId intern(ExpressionNode node);
  std::map<ExpressionNode, ExpressionId> ids_;
  std::vector<ExpressionNode> nodes_;
};

}  // namespace torii
