// SPDX-License-Identifier: Apache-2.0
// The pool of expressions. Operands of a node always have smaller ids than the node.
#include "runtime/plan/expression.hpp"

#include <algorithm>
#include <bit>
#include <string_view>

namespace torii {

ExpressionId ExpressionPool::intern(ExpressionNode node) {
  const auto [at, fresh] = ids_.try_emplace(node, static_cast<ExpressionId>(nodes_.size()));
  if (fresh) nodes_.push_back(node);
  return at->second;
}

ExpressionId ExpressionPool::leaf(int rank) {
  ExpressionNode node;
  node.leaf_rank = rank;
  return intern(node);
}

ExpressionId ExpressionPool::rounded(ExpressionId id) {
  ExpressionNode node = this->node(id);
  node.rounded = true;
  return intern(node);
}

ExpressionId ExpressionPool::fold(std::span<const ExpressionId> operands, bool rounded) {
  ExpressionId value = operands.front();
  for (const ExpressionId operand : operands.subspan(1)) value = intern({-1, value, operand, false});
  return rounded ? this->rounded(value) : value;
}

ExpressionId ExpressionPool::canonical(std::span<const ExpressionId> operands, bool rounded) {
  ExpressionId value = operands.front();
  if (operands.size() > 1) {
    const std::size_t middle = std::bit_floor(operands.size() - 1);
    const ExpressionId left = canonical(operands.first(middle), false);
    const ExpressionId right = canonical(operands.subspan(middle), false);
    value = intern({-1, left, right, false});
  }
  return rounded ? this->rounded(value) : value;
}

std::vector<int> ExpressionPool::occurrences(ExpressionId id, int ranks) const {
  std::vector<int> counts(static_cast<std::size_t>(ranks), 0);
  std::vector<int> uses(static_cast<std::size_t>(id) + 1, 0);
  uses.back() = 1;
  for (ExpressionId at = id; at >= 0; --at) {
    const int times = uses[static_cast<std::size_t>(at)];
    if (times == 0) continue;
    const ExpressionNode& here = node(at);
    if (here.leaf_rank >= 0) {
      counts[static_cast<std::size_t>(here.leaf_rank)] += times;
    } else {
      uses[static_cast<std::size_t>(here.left)] += times;
      uses[static_cast<std::size_t>(here.right)] += times;
    }
  }
  return counts;
}

std::string ExpressionPool::text(ExpressionId id, std::size_t most_characters) const {
  // An own stack instead of recursion: the left fold of a long chain is as deep as the chain.
  constexpr ExpressionId kSpace = -2;
  constexpr ExpressionId kClose = -3;
  constexpr std::string_view kCut = "...";
  std::string result;
  std::vector<ExpressionId> open = {id};
  while (!open.empty() && result.size() <= most_characters) {
    const ExpressionId at = open.back();
    open.pop_back();
    if (at == kSpace || at == kClose) {
      result += at == kSpace ? ' ' : ')';
    } else if (node(at).leaf_rank >= 0) {
      result += std::to_string(node(at).leaf_rank);
    } else {
      result += '(';
      open.insert(open.end(), {kClose, node(at).right, kSpace, node(at).left});
    }
  }
  if (result.size() > most_characters) {
    result.resize(most_characters - std::min(most_characters, kCut.size()));
    result += kCut.substr(0, most_characters);
  }
  return result;
}

}  // namespace torii
