// SPDX-License-Identifier: Apache-2.0
// Evaluates expressions over ranges of elements that lie in one block.
#include "api/team/expectation.hpp"

#include <algorithm>
#include <vector>

#include "api/calls/finish.hpp"
#include "collectives/building/plan_builder.hpp"

namespace torii {
namespace {

/// Elements evaluated at once: bounds the memory of deep expressions.
constexpr std::size_t kPortionElements = 1024;

/// The value of an expression: elements of the type, or floats where it has not been rounded to a small float.
struct Value {
  std::vector<std::byte> bytes;
  bool wide = false;
};

class Evaluation {
 public:
  /// `type`: with which the call runs; `user`: its function, or nullptr.
  Evaluation(const CallSpec& spec, Type type, const kernels::UserFunction* user, const ExpressionPool& pool,
             OperandFunction operand, void* data)
      : user_(user),
        pool_(pool),
        operand_(operand),
        data_(data),
        narrow_(is_small_float(type)),
        element_bytes_(user != nullptr ? user->element_bytes : size_of(type)) {
    if (user == nullptr) fold_ = kernels::find(op_of(spec), type, kernels::Isa::reference);
  }

  Value of(ExpressionId id, std::size_t first, std::size_t count) const {
    const ExpressionNode& node = pool_.node(id);
    Value value;
    if (node.leaf_rank >= 0) {
      value.bytes.resize(count * element_bytes_);
      operand_(node.leaf_rank, first, count, value.bytes.data(), data_);
      return value;
    }
    const Value left = of(node.left, first, count);
    const Value right = of(node.right, first, count);
    value.wide = narrow_ && user_ == nullptr && !node.rounded;
    value.bytes.resize(count * (value.wide ? sizeof(float) : element_bytes_));
    const void* sources[] = {left.bytes.data(), right.bytes.data()};
    void* targets[] = {value.bytes.data()};
    const std::uint8_t wide_sources[] = {left.wide ? std::uint8_t{1} : std::uint8_t{0},
                                         right.wide ? std::uint8_t{1} : std::uint8_t{0}};
    const kernels::Operands operands = {.sources = sources,
                                        .source_count = 2,
                                        .targets = targets,
                                        .target_count = 1,
                                        .wide_sources = left.wide || right.wide ? wide_sources : nullptr,
                                        .wide_targets = value.wide ? 1U : 0U};
    if (user_ != nullptr) {
      kernels::fold_user(*user_, operands, count);
    } else {
      fold_(operands, count);
    }
    return value;
  }

 private:
  const kernels::UserFunction* user_;
  const ExpressionPool& pool_;
  OperandFunction operand_;
  void* data_;
  bool narrow_;
  std::size_t element_bytes_;
  kernels::FoldFn fold_ = nullptr;
};

/// For collectives that combine nothing: each block of the result is part of one rank's operand.
void expect_blocks(const Team& team, const CallSpec& spec, std::size_t first, std::size_t count,
                   OperandFunction operand, void* operand_data, std::byte* out) {
  const std::size_t element_bytes = size_of(spec.type);
  const std::size_t own_shift = spec.count * static_cast<std::size_t>(team.rank());
  for (std::size_t done = 0; done < count;) {
    const std::size_t at = first + done;
    const std::size_t inside = at % spec.count;
    const std::size_t now = std::min({kPortionElements, count - done, spec.count - inside});
    const auto sender = static_cast<int>(at / spec.count);
    if (spec.collective == Collective::scatter) {
      operand(spec.root, own_shift + at, now, out + done * element_bytes, operand_data);
    } else {
      const std::size_t shift = spec.collective == Collective::alltoall ? own_shift : 0;
      operand(sender, shift + inside, now, out + done * element_bytes, operand_data);
    }
    done += now;
  }
}

/// The operands of a call whose sums are made as float.
struct WidenedOperand {
  const CallPlan& call_plan;
  OperandFunction operand;
  void* data;

  static void write(int rank, std::size_t first, std::size_t count, void* out, void* data) {
    const auto& self = *static_cast<const WidenedOperand*>(data);
    std::vector<std::byte> narrow(count * size_of(self.call_plan.spec.type));
    self.operand(rank, first, count, narrow.data(), self.data);
    widen(self.call_plan, narrow.data(), out, count);
  }
};

/// For collectives that combine: evaluates each block's expression.
void evaluate(const Team& team, const CallPlan& call_plan, const kernels::UserFunction* user, std::size_t first,
              std::size_t count, OperandFunction operand, void* operand_data, std::byte* out) {
  const CallSpec& spec = call_plan.spec;
  const std::size_t element_bytes = call_plan.shape.element_bytes;
  ExpressionPool pool;
  const Selected& selected = *call_plan.selected;
  const Evaluation evaluation(spec, call_plan.shape.type, user, pool, operand, operand_data);
  const std::size_t shift = spec.collective == Collective::reduce_scatter
                                ? static_cast<std::size_t>(call_plan.result_shift_bytes) / element_bytes
                                : 0;
  std::vector<ExpressionId> orders;  // by block
  for (std::size_t done = 0; done < count;) {
    const std::size_t at = first + done;
    const std::size_t now = std::min(kPortionElements, count - done);
    const std::size_t unit_bytes = call_plan.shape.unit_bytes;
    const Layout& layout = call_plan.shape.layout;
    const int block = layout.block_of((shift + at) * unit_bytes);
    std::size_t same = 1;
    while (same < now && layout.block_of((shift + at + same) * unit_bytes) == block) ++same;
    if (orders.empty()) orders.assign(static_cast<std::size_t>(layout.blocks()), kNoExpression);
    ExpressionId& order = orders[static_cast<std::size_t>(block)];
    if (order == kNoExpression) {
      const int place = is_prefix(spec.collective) ? team.rank() : block;
      order = call_plan.leaves != nullptr
                  ? pool.canonical(all_leaves(pool, static_cast<int>(call_plan.leaves->leaves())), true)
                  : selected.algorithm->order(selected.request, place, pool);
    }
    const Value value = evaluation.of(order, shift + at, same);
    std::copy_n(value.bytes.data(), same * element_bytes, out + done * element_bytes);
    done += same;
  }
}

}  // namespace

void expect(Team& team, const CallPlan& call_plan, const kernels::UserFunction* user, std::size_t first,
            std::size_t count, OperandFunction operand, void* operand_data, std::byte* out) {
  const CallSpec& spec = call_plan.spec;
  if (spec.has(CallMark::unequal)) {
    throw Error(Status::unsupported, "what blocks of unequal lengths give depends on lengths that only others know");
  }
  const std::size_t element_bytes = call_plan.shape.element_bytes;
  const std::size_t elements = call_plan.result_bytes / element_bytes;
  if (first > elements || count > elements - first) {
    throw Error(Status::invalid_argument, "elements " + std::to_string(first) + " to " + std::to_string(first + count) +
                                              " are not in the result, which has " + std::to_string(elements));
  }
  if (spec.collective == Collective::broadcast) {
    operand(spec.root, first, count, out, operand_data);
    return;
  }
  if (!combines(spec.collective)) {
    expect_blocks(team, spec, first, count, operand, operand_data, out);
    return;
  }
  if (!call_plan.sums_as_float) {
    evaluate(team, call_plan, user, first, count, operand, operand_data, out);
    if (call_plan.is_finished_at_end) finish(call_plan, out, out, count);
    return;
  }
  WidenedOperand widened = {call_plan, operand, operand_data};
  std::vector<std::byte> floats(count * element_bytes);
  evaluate(team, call_plan, user, first, count, WidenedOperand::write, &widened, floats.data());
  finish(call_plan, floats.data(), out, count);
}

}  // namespace torii
