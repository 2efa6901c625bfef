// SPDX-License-Identifier: Apache-2.0
// Folds subtrees of leaves: of an array in one pass, of leaves that come one by one as a binary counter counts.
#include "api/calls/leaf_folding.hpp"

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "reduce_kernels/kernels.hpp"
#include "runtime/execution/data_mover.hpp"

namespace torii {
namespace {

class LeafFolding {
 public:
  LeafFolding(const Request& request, ArenaCopies& copies, int rank)
      : call_(request.call),
        source_(*request.call.leaves()),
        shape_(request.call_plan->shape),
        copies_(copies),
        subtrees_(source_.intervals->subtrees_of(rank)),
        first_leaf_(source_.intervals->first(rank)),
        elements_(shape_.layout.total_bytes() / shape_.unit_bytes),
        widens_(request.call_plan->sums_as_float),
        leaf_shape_(shape_) {
    if (!widens_) return;
    // The leaves are small floats, and the call is one of float.
    leaf_shape_.type = call_.spec.type;
    leaf_shape_.element_bytes = size_of(call_.spec.type);
    leaf_shape_.fold = kernels::find(op_of(call_.spec), call_.spec.type);
  }
  ~LeafFolding() {
    for (const std::byte* const value : taken_) copies_.give_back(value);
  }
  LeafFolding(const LeafFolding&) = delete;
  LeafFolding& operator=(const LeafFolding&) = delete;

  /// Writes the operands, one behind the other at the call's distance.
  void run(std::byte* operands) {
    for (const LeafSubtree& subtree : subtrees_) {
      std::byte* const to = operands + static_cast<std::size_t>(subtree.operand) * shape_.operand_stride_bytes;
      if (source_.function.write != nullptr) {
        fold_written(subtree, to);
      } else {
        fold_array(subtree, to);
      }
    }
  }

 private:
  /// One value of the stack: E over a power of two of leaves.
  struct Partial {
    std::byte* value = nullptr;
    std::size_t leaves = 0;
  };

  void fold_array(const LeafSubtree& subtree, std::byte* to) const {
    const std::size_t stride_bytes = stride() * leaf_shape_.element_bytes;
    const auto* const input = static_cast<const std::byte*>(call_.memory.input);
    std::vector<const void*> sources;
    sources.reserve(subtree.count);
    for (std::size_t i = 0; i < subtree.count; ++i) {
      sources.push_back(input + (subtree.first - first_leaf_ + i) * stride_bytes);
    }
    fold_into(to, sources, nullptr);
  }

  /// Elements from one leaf to the next.
  std::size_t stride() const { return source_.stride == 0 ? elements_ : source_.stride; }

  /// Equal neighbours on the stack are joined at once, so the stack holds a value for each bit of the number of leaves.
  /// Beside it there is a leaf that was just written. Together they are at most log2 of all leaves, and one.
  void fold_written(const LeafSubtree& subtree, std::byte* to) {
    std::vector<Partial> stack;
    for (std::size_t i = 0; i < subtree.count; ++i) {
      const std::size_t leaf = subtree.first + i;
      if (i % 2 == 1) {
        write(leaf, fresh());
        const void* const pair[] = {stack.back().value, fresh()};
        constexpr std::uint8_t kWide[] = {1, 0};
        fold_into(stack.back().value, pair, kWide);
        ++stack.back().leaves;
      } else {
        stack.push_back({push(leaf, i == 0 ? to : spare()), 1});
      }
      while (stack.size() > 1 && stack[stack.size() - 2].leaves == stack.back().leaves) join(stack);
    }
    while (stack.size() > 1) join(stack);
  }

  /// Writes a leaf to `to`, as an operand has it.
  std::byte* push(std::size_t leaf, std::byte* to) {
    write(leaf, widens_ ? fresh() : to);
    const void* const one[] = {fresh_};
    if (widens_) fold_into(to, one, nullptr);
    return to;
  }

  /// Folds leaves, or values of the stack that `wide` marks.
  void fold_into(std::byte* to, std::span<const void* const> sources, const std::uint8_t* wide) const {
    void* const target = to;
    const kernels::Operands operands = {.sources = sources.data(),
                                        .source_count = static_cast<int>(sources.size()),
                                        .targets = &target,
                                        .target_count = 1,
                                        .wide_sources = widens_ ? wide : nullptr,
                                        .wide_targets = widens_ ? 1U : 0U};
    fold(operands, elements_, leaf_shape_, call_.user(), Fold::canonical);
  }

  /// The last two values become one.
  void join(std::vector<Partial>& stack) {
    const Partial right = stack.back();
    stack.pop_back();
    Partial& left = stack.back();
    const void* const sources[] = {left.value, right.value};
    void* const target = left.value;
    const kernels::Operands operands = {.sources = sources, .source_count = 2, .targets = &target, .target_count = 1};
    fold(operands, elements_, shape_, call_.user(), Fold::left);
    left.leaves += right.leaves;
    spare_.push_back(right.value);
  }

  void write(std::size_t leaf, std::byte* to) const {
    const int answer = source_.function.write(leaf, to, source_.function.data);
    if (answer == 0) return;
    throw Error(Status::aborted, "the caller's function could not write leaf " + std::to_string(leaf) +
                                     ": it returned " + std::to_string(answer));
  }

  /// Where the leaf is that was just written.
  std::byte* fresh() {
    if (fresh_ == nullptr) fresh_ = spare();
    return fresh_;
  }
  std::byte* spare() {
    if (spare_.empty()) {
      taken_.reserve(taken_.size() + 1);
      taken_.push_back(copies_.take(elements_ * shape_.element_bytes));
      return taken_.back();
    }
    std::byte* const value = spare_.back();
    spare_.pop_back();
    return value;
  }

  const CallDescription& call_;
  const LeafSource& source_;
  const CallShape& shape_;
  ArenaCopies& copies_;
  const std::span<const LeafSubtree> subtrees_;
  const std::size_t first_leaf_;
  const std::size_t elements_;  ///< of a leaf
  const bool widens_;           ///< leaves are small floats, operands are float
  CallShape leaf_shape_;        ///< shape_ with the type of leaves
  std::byte* fresh_ = nullptr;
  std::vector<std::byte*> spare_;  ///< vectors that are not in use
  std::vector<std::byte*> taken_;  ///< all vectors that were borrowed
};

}  // namespace

void check_leaf_stride(const LeafSource& source, const CallPlan& call_plan, int rank) {
  const std::size_t stride = source.stride, leaves = source.intervals->count(rank);
  if (stride == 0 || leaves < 2) return;
  const CallShape& shape = call_plan.shape;
  const std::size_t elements = shape.layout.total_bytes() / shape.unit_bytes;
  const auto refuse = [&](const std::string& reason) {
    throw Error(Status::invalid_argument, "leaf_stride is " + std::to_string(stride) + ", but " + reason);
  };
  if (stride < elements) refuse("a leaf has " + std::to_string(elements) + " elements");
  const std::size_t most = std::numeric_limits<std::ptrdiff_t>::max() / shape.unit_bytes / leaves;
  if (stride > most) refuse("with " + std::to_string(leaves) + " leaves the most is " + std::to_string(most));
}

void fold_leaves(Request& request, ArenaCopies& copies, int rank) {
  const LeafSource& source = *request.call.leaves();
  const CallPlan& call_plan = *request.call_plan;
  const bool has_leaves = source.intervals->count(rank) != 0 && request.call.spec.count != 0;
  if (!has_leaves || (!call_plan.folds_leaves && source.function.write == nullptr)) return;
  request.copies.operands = copies.take(call_plan.input_bytes);
  LeafFolding(request, copies, rank).run(request.copies.operands);
}

}  // namespace torii
