// SPDX-License-Identifier: Apache-2.0
// Fills in call plans: all that follows from a call and its class without selection or plan.
#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "api/agreement/team_control.hpp"
#include "api/calls/finish.hpp"
#include "api/calls/plan_maker.hpp"
#include "runtime/base/status.hpp"

namespace torii {

std::size_t element_bytes_of(const CallArguments& arguments) noexcept {
  return arguments.user.call != nullptr ? arguments.user.element_bytes : size_of(arguments.type);
}

std::size_t unit_bytes_of(std::size_t bytes) noexcept {
  std::size_t unit = 1;
  while (unit < bytes) unit *= 2;
  return unit;
}

namespace {

std::uint32_t mix(std::uint32_t hash, std::uint64_t value) noexcept {
  // splitmix64's finaliser, folded to 32 bits: calls that differ in one small number get unlike signatures.
  value += 0x9e3779b97f4a7c15ULL + (static_cast<std::uint64_t>(hash) << 32);
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  value ^= value >> 31;
  return static_cast<std::uint32_t>(value ^ (value >> 32));
}

bool has_result(const CallArguments& arguments, int rank) {
  if (arguments.collective == Collective::exscan) return rank != 0;
  if (arguments.block_counts != nullptr) return arguments.block_counts[rank] != 0;
  const bool at_root_only = arguments.collective == Collective::reduce || arguments.collective == Collective::gather;
  return !at_root_only || rank == arguments.root;
}

/// The blocks of a reduce_scatter with lengths of their own, each in `parts` parts.
Layout layout_of(const std::size_t* counts, int ranks, int parts, std::size_t unit_bytes, std::size_t segment_bytes) {
  std::vector<std::size_t> offsets = {0};
  std::size_t begin_bytes = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::size_t bytes = counts[rank] * unit_bytes;
    const auto count = static_cast<std::size_t>(parts);
    const std::size_t part_bytes = round_up((bytes + count - 1) / count, std::max<std::size_t>(128, unit_bytes));
    for (std::size_t part = 1; part <= count; ++part) {
      offsets.push_back(begin_bytes + std::min(part * part_bytes, bytes));
    }
    begin_bytes += bytes;
  }
  return {std::move(offsets), segment_bytes};
}

/// The operands that a rank folds from its leaves. A single leaf is an operand as it is.
void set_leaf_shapes(const LeafIntervals& leaves, std::size_t vector_bytes, int rank, CallPlan& call_plan) {
  call_plan.shape.operand_stride_bytes = round_up(vector_bytes, 64);
  // Refused alike on all ranks, whatever their own number of operands is.
  const auto most = static_cast<std::size_t>(std::max(leaves.operands_max(), 1));
  if (call_plan.shape.operand_stride_bytes > std::numeric_limits<std::ptrdiff_t>::max() / 2 / most) {
    invalid("count is " + std::to_string(call_plan.arguments.count) + ", whose bytes in " + std::to_string(most) +
            " operands of a rank overflow");
  }
  call_plan.folds_leaves = leaves.count(rank) > 1 || call_plan.sums_as_float;
  const auto operands = static_cast<std::size_t>(leaves.operands(rank));
  call_plan.input_bytes = operands == 0 ? 0 : (operands - 1) * call_plan.shape.operand_stride_bytes + vector_bytes;
}

/// Bytes of this rank's buffers, and how far behind byte 0 of the vector they begin.
void set_buffer_shapes(const CallArguments& arguments, std::size_t own_bytes, int ranks, int rank,
                       CallPlan& call_plan) {
  const std::size_t all_bytes =
      has_block_per_rank(arguments.collective) ? own_bytes * static_cast<std::size_t>(ranks) : own_bytes;
  const auto own_shift = static_cast<std::ptrdiff_t>(own_bytes) * rank;
  const Collective collective = arguments.collective;
  if (const std::size_t* const counts = arguments.block_counts; counts != nullptr) {
    const std::size_t element_bytes = call_plan.shape.element_bytes;
    call_plan.input_bytes = own_bytes;
    call_plan.result_bytes = counts[rank] * element_bytes;
    const std::size_t before = std::accumulate(counts, counts + rank, std::size_t{0});
    call_plan.result_shift_bytes = static_cast<std::ptrdiff_t>(before * element_bytes);
    return;
  }
  const bool takes_one = collective == Collective::reduce_scatter || collective == Collective::scatter;
  const bool gives_one = collective == Collective::all_gather || collective == Collective::gather;
  call_plan.input_bytes = gives_one ? own_bytes : all_bytes;
  if (collective == Collective::scatter && rank != arguments.root) call_plan.input_bytes = 0;
  call_plan.result_bytes = !has_result(arguments, rank) ? 0 : takes_one ? own_bytes : all_bytes;
  if (gives_one) call_plan.input_shift_bytes = own_shift;
  if (takes_one) call_plan.result_shift_bytes = own_shift;
  if (arguments.leaves != nullptr) set_leaf_shapes(*arguments.leaves, all_bytes, rank, call_plan);
}

void set_record(CallPlan& call_plan) {
  const CallArguments& arguments = call_plan.arguments;
  call_plan.record.count = count_on_record(arguments);
  call_plan.record.kind =
      pack_kind(call_plan.shape.signature, static_cast<std::uint8_t>(arguments.collective),
                static_cast<std::uint8_t>(arguments.type), static_cast<std::uint8_t>(op_number(arguments)));
  if (arguments.is_packed) call_plan.record.kind |= kPacksInRecord;
  if (arguments.leaves != nullptr) call_plan.record.kind |= kLeavesInRecord;
  if (!arguments.commutes) call_plan.record.kind |= kOrderedInRecord;
}

std::uint32_t signature_of(const CallPlan& call_plan, int root) noexcept {
  const CallArguments& arguments = call_plan.arguments;
  const bool folds = combines(arguments.collective);
  std::uint32_t signature = mix(17, static_cast<std::uint64_t>(arguments.collective));
  signature = mix(signature, folds ? static_cast<std::uint64_t>(op_number(arguments)) + 1 : 0);
  signature = mix(signature, arguments.unequal ? kUnequalBytes : arguments.count * call_plan.shape.element_bytes);
  signature = mix(signature, folds ? static_cast<std::uint64_t>(arguments.type) + 1 : 0);
  signature = mix(signature, static_cast<std::uint64_t>(root));
  if (arguments.leaves != nullptr) signature = mix(signature, arguments.leaves->digest());
  for (const std::size_t count : call_plan.block_counts) signature = mix(signature, count);
  if (arguments.tag != 0) signature = mix(signature, arguments.tag);
  if (!arguments.commutes) signature = mix(signature, kOrderedInRecord);
  return signature | 1U;
}

bool is_plain(const CallArguments& arguments) noexcept {
  const bool is_empty = arguments.count == 0 && arguments.collective != Collective::barrier;
  if (arguments.leaves != nullptr && !arguments.leaves->is_one_each()) return false;
  return !arguments.unequal && arguments.block_counts == nullptr && !arguments.is_internal && arguments.tag == 0 &&
         arguments.op != Op::user && !arguments.multiplies && !is_empty;
}

/// The lengths for which the call plan of a plain call may be filled in quickly.
void set_counts(CallPlan& call_plan, const ByteInterval& holds, int ranks) noexcept {
  const CallArguments& arguments = call_plan.arguments;
  call_plan.counts = {};
  if (call_plan.key >= kOfUnequalBlocks && arguments.unequal) call_plan.counts = {0, 0};
  if (call_plan.key < 0 || arguments.unequal || arguments.leaves != nullptr ||
      arguments.collective == Collective::barrier)
    return;
  constexpr std::size_t kMost = std::numeric_limits<std::ptrdiff_t>::max() / 2;
  const std::size_t parts = has_block_per_rank(arguments.collective) ? static_cast<std::size_t>(ranks) : 1;
  const std::size_t bytes = call_plan.shape.unit_bytes * parts;
  call_plan.counts = {std::max<std::size_t>(1, (holds.least + bytes - 1) / bytes), std::min(holds.most, kMost) / bytes};
}

/// Sets the work at the end of the operation, and notes the calls that can do without it.
void set_end(int rank, int ranks, CallPlan& call_plan) {
  const CallArguments& arguments = call_plan.arguments;
  const bool has_leaves = arguments.leaves != nullptr;
  call_plan.operands = static_cast<std::uint32_t>(has_leaves ? arguments.leaves->leaves() : ranks);
  call_plan.is_finished_at_end =
      call_plan.sums_as_float || needs_finish(arguments, rank, static_cast<int>(call_plan.operands));
  call_plan.multiplies = arguments.multiplies && combines(arguments.collective);
  const bool is_exchange = arguments.unequal && call_plan.selected->is_exchange && !arguments.is_internal;
  const bool may_repeat = (is_exchange && arguments.tag == 0) || (is_plain(arguments) && !call_plan.is_finished_at_end);
  const int kind = has_leaves ? kOneLeafEach : is_exchange ? kOfUnequalBlocks : 0;
  call_plan.key = !may_repeat ? -1 : static_cast<int>(arguments.collective) + kind;
}

}  // namespace

/// The bytes of one element with which the plan runs.
std::size_t PlanMaker::own_element_bytes(const CallArguments& arguments) const noexcept {
  return runs_as_float(arguments) ? sizeof(float) : element_bytes_of(arguments);
}

/// All of the call plan that depends on the length.
void PlanMaker::set_lengths(CallPlan& call_plan, const std::size_t* block_counts) const {
  const int ranks = members_.ranks();
  const CallArguments& arguments = call_plan.arguments;
  const ClassPlan& selected = *call_plan.selected;
  CallShape& shape = call_plan.shape;
  const std::size_t unit_bytes = shape.unit_bytes;
  const std::size_t segment_bytes = selected.request.tuning.segment_bytes;
  const bool has_counts = block_counts != nullptr;
  const bool per_rank = has_block_per_rank(arguments.collective);
  const std::size_t block_bytes = (arguments.unequal ? 0 : arguments.count) * unit_bytes;
  const std::size_t total_bytes = per_rank && !has_counts ? block_bytes * static_cast<std::size_t>(ranks) : block_bytes;
  const auto blocks = static_cast<std::size_t>(selected.blocks);
  const std::size_t even_bytes = round_up((total_bytes + blocks - 1) / blocks, std::max<std::size_t>(128, unit_bytes));
  const Layout::Parts parts = {selected.blocks / ranks, even_bytes};
  shape.layout = has_counts ? layout_of(block_counts, ranks, parts.count, unit_bytes, segment_bytes)
                 : per_rank ? Layout(total_bytes, selected.blocks, segment_bytes, block_bytes, parts)
                            : Layout(selected.dealing, total_bytes, selected.blocks, segment_bytes, even_bytes);
  shape.non_temporal = total_bytes >= kNonTemporalBytes;
  shape.signature = signature_of(call_plan, selected.request.root);
  const std::size_t own_bytes = (arguments.unequal ? 0 : arguments.count) * shape.element_bytes;
  if (is_personalised(arguments.collective)) shape.block_bytes = own_bytes;
  set_buffer_shapes(arguments, own_bytes, ranks, members_.rank(), call_plan);
  set_record(call_plan);
  for (CallPlan::OnChannel& channel : call_plan.on_channels) channel.is_current = channel.has_program = false;
}

void PlanMaker::fill(CallPlan& call_plan, const CallArguments& arguments) const {
  const int ranks = members_.ranks();
  call_plan.arguments = arguments;
  if (arguments.unequal) call_plan.arguments.count = 0;  // lengths of a call are not those of its plan
  call_plan.block_counts.clear();
  if (arguments.block_counts != nullptr) {
    call_plan.block_counts.assign(arguments.block_counts, arguments.block_counts + ranks);
    call_plan.arguments.block_counts = call_plan.block_counts.data();
  }
  call_plan.sums_as_float = runs_as_float(arguments);
  call_plan.input_shift_bytes = call_plan.result_shift_bytes = 0;
  call_plan.folds_leaves = false;
  CallShape& shape = call_plan.shape;
  shape.type = call_plan.sums_as_float ? Type::f32 : arguments.type;
  shape.element_bytes = own_element_bytes(arguments);
  shape.unit_bytes = unit_bytes_of(shape.element_bytes);
  const bool folds = combines(arguments.collective) && arguments.user.call == nullptr;
  shape.fold = folds ? kernels::find(arguments.op, shape.type, members_.context().isa()) : nullptr;
  shape.user = arguments.user.call != nullptr ? &call_plan.arguments.user : nullptr;
  set_lengths(call_plan, call_plan.arguments.block_counts);
  set_end(members_.rank(), ranks, call_plan);
  set_counts(call_plan, call_plan.selected->holds, ranks);
}

void PlanMaker::set_count(CallPlan& call_plan, std::size_t count) const noexcept {
  call_plan.arguments.count = count;
  set_lengths(call_plan, nullptr);
}

}  // namespace torii
