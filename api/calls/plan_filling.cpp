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

std::size_t element_bytes_of(const CallSpec& spec) noexcept {
  return spec.user_bytes != 0 ? spec.user_bytes : size_of(spec.type);
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

bool has_result(const CallSpec& spec, int rank) {
  if (spec.collective == Collective::exscan) return rank != 0;
  const bool at_root_only = spec.collective == Collective::reduce || spec.collective == Collective::gather;
  return !at_root_only || rank == spec.root;
}

/// The blocks of a reduce_scatter with lengths of their own, each in `parts` parts.
Layout layout_of(const std::vector<std::size_t>& counts, int parts, std::size_t unit_bytes, std::size_t segment_bytes) {
  std::vector<std::size_t> offsets = {0};
  std::size_t begin_bytes = 0;
  for (const std::size_t elements : counts) {
    const std::size_t bytes = elements * unit_bytes;
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
    invalid("count is " + std::to_string(call_plan.spec.count) + ", whose bytes in " + std::to_string(most) +
            " operands of a rank overflow");
  }
  call_plan.folds_leaves = leaves.count(rank) > 1 || call_plan.sums_as_float;
  const auto operands = static_cast<std::size_t>(leaves.operands(rank));
  call_plan.input_bytes = operands == 0 ? 0 : (operands - 1) * call_plan.shape.operand_stride_bytes + vector_bytes;
}

/// Bytes of this rank's buffers, and how far behind byte 0 of the vector they begin.
void set_buffer_shapes(std::size_t own_bytes, int ranks, int rank, CallPlan& call_plan) {
  const CallSpec& spec = call_plan.spec;
  const std::size_t all_bytes =
      has_block_per_rank(spec.collective) ? own_bytes * static_cast<std::size_t>(ranks) : own_bytes;
  const auto own_shift = static_cast<std::ptrdiff_t>(own_bytes) * rank;
  if (const auto& counts = call_plan.block_counts; !counts.empty()) {
    const std::size_t element_bytes = call_plan.shape.element_bytes;
    call_plan.input_bytes = own_bytes;
    call_plan.result_bytes = counts[static_cast<std::size_t>(rank)] * element_bytes;
    const std::size_t before = std::accumulate(counts.begin(), counts.begin() + rank, std::size_t{0});
    call_plan.result_shift_bytes = static_cast<std::ptrdiff_t>(before * element_bytes);
    return;
  }
  const bool takes_one = spec.collective == Collective::reduce_scatter || spec.collective == Collective::scatter;
  const bool gives_one = spec.collective == Collective::all_gather || spec.collective == Collective::gather;
  call_plan.input_bytes = gives_one ? own_bytes : all_bytes;
  if (spec.collective == Collective::scatter && rank != spec.root) call_plan.input_bytes = 0;
  call_plan.result_bytes = !has_result(spec, rank) ? 0 : takes_one ? own_bytes : all_bytes;
  if (gives_one) call_plan.input_shift_bytes = own_shift;
  if (takes_one) call_plan.result_shift_bytes = own_shift;
  if (call_plan.leaves != nullptr) set_leaf_shapes(*call_plan.leaves, all_bytes, rank, call_plan);
}

void set_record(CallPlan& call_plan) {
  const CallSpec& spec = call_plan.spec;
  call_plan.record.count = count_on_record(spec);
  call_plan.record.kind = pack_kind(call_plan.shape.signature, static_cast<std::uint8_t>(spec.collective),
                                    static_cast<std::uint8_t>(spec.type), static_cast<std::uint8_t>(spec.op));
  if (spec.has(CallMark::packed)) call_plan.record.kind |= kPacksInRecord;
  if (spec.has(CallMark::leaves)) call_plan.record.kind |= kLeavesInRecord;
  if (spec.has(CallMark::ordered)) call_plan.record.kind |= kOrderedInRecord;
}

/// Calls that must not take each other's messages have unlike signatures. `root`: the plan's.
std::uint32_t signature_of(const CallSpec& spec, int root, std::size_t element_bytes) noexcept {
  // The binding names all fields, so a new one does not compile until it is mixed in, or is known not to matter: marks
  // that change messages have a content or a tag, and a user's element counts in the bytes.
  const auto& [collective, type, op, marks, spec_root, count, user_bytes, tag, content] = spec;
  const bool folds = combines(collective);
  std::uint32_t signature = mix(17, static_cast<std::uint64_t>(collective));
  signature = mix(signature, folds ? static_cast<std::uint64_t>(op) + 1 : 0);
  signature = mix(signature, spec.has(CallMark::unequal) ? kUnequalBytes : count * element_bytes);
  signature = mix(signature, folds ? static_cast<std::uint64_t>(type) + 1 : 0);
  signature = mix(signature, static_cast<std::uint64_t>(root));
  if (has_content(spec)) signature = mix(signature, content);
  if (tag != 0) signature = mix(signature, tag);
  if (spec.has(CallMark::ordered)) signature = mix(signature, kOrderedInRecord);
  return signature | 1U;
}

/// Sets the work at the end of the operation, and notes the calls that can do without it.
void set_end(int rank, int ranks, CallPlan& call_plan) {
  const CallSpec& spec = call_plan.spec;
  const bool has_leaves = call_plan.leaves != nullptr;
  call_plan.operands = static_cast<std::uint32_t>(has_leaves ? call_plan.leaves->leaves() : ranks);
  call_plan.is_finished_at_end =
      call_plan.sums_as_float || needs_finish(spec, rank, static_cast<int>(call_plan.operands));
  const bool is_empty = spec.count == 0 && spec.collective != Collective::barrier && !spec.has(CallMark::unequal);
  const bool folds_leaves = has_leaves && !spec.has(CallMark::one_leaf_each);
  call_plan.is_plain = !is_empty && !folds_leaves && call_plan.lengths == nullptr && spec.op != OpNumber::user &&
                       !multiplies(spec) && !call_plan.is_finished_at_end && spec.tag == 0 &&
                       !spec.has(CallMark::internal) && !spec.has(CallMark::block_counts);
}

/// The lengths for which a plain call's plan may be filled in quickly.
void set_counts(CallPlan& call_plan, const ByteInterval& holds, int ranks) noexcept {
  const CallSpec& spec = call_plan.spec;
  call_plan.counts = {};
  if (!call_plan.is_plain) return;
  call_plan.counts = {spec.count, spec.count};
  if (spec.count == 0 || call_plan.leaves != nullptr) return;
  constexpr std::size_t kMost = std::numeric_limits<std::ptrdiff_t>::max() / 2;
  const std::size_t parts = has_block_per_rank(spec.collective) ? static_cast<std::size_t>(ranks) : 1;
  const std::size_t bytes = call_plan.shape.unit_bytes * parts;
  call_plan.counts = {std::max<std::size_t>(1, (holds.least + bytes - 1) / bytes), std::min(holds.most, kMost) / bytes};
}

}  // namespace

/// The bytes of one element with which the plan runs.
std::size_t PlanMaker::own_element_bytes(const CallSpec& spec) const noexcept {
  return runs_as_float(spec) ? sizeof(float) : element_bytes_of(spec);
}

/// All of the call plan that depends on the length.
void PlanMaker::set_lengths(CallPlan& call_plan) const {
  const int ranks = members_.ranks();
  const CallSpec& spec = call_plan.spec;
  const ClassPlan& selected = *call_plan.selected;
  CallShape& shape = call_plan.shape;
  const std::size_t unit_bytes = shape.unit_bytes;
  const std::size_t segment_bytes = selected.request.tuning.segment_bytes;
  const bool has_counts = !call_plan.block_counts.empty();
  const bool per_rank = has_block_per_rank(spec.collective);
  const std::size_t block_bytes = spec.count * unit_bytes;
  const std::size_t total_bytes = per_rank && !has_counts ? block_bytes * static_cast<std::size_t>(ranks) : block_bytes;
  const auto blocks = static_cast<std::size_t>(selected.plan.blocks);
  const std::size_t even_bytes = round_up((total_bytes + blocks - 1) / blocks, std::max<std::size_t>(128, unit_bytes));
  const Layout::Parts parts = {selected.plan.blocks / ranks, even_bytes};
  shape.layout = has_counts ? layout_of(call_plan.block_counts, parts.count, unit_bytes, segment_bytes)
                 : per_rank
                     ? Layout(total_bytes, selected.plan.blocks, segment_bytes, block_bytes, parts)
                     : Layout(selected.plan.dealing, total_bytes, selected.plan.blocks, segment_bytes, even_bytes);
  shape.non_temporal = total_bytes >= kNonTemporalBytes;
  shape.signature = signature_of(spec, selected.request.root, shape.element_bytes);
  const std::size_t own_bytes = spec.count * shape.element_bytes;
  if (is_personalised(spec.collective)) shape.block_bytes = own_bytes;
  set_buffer_shapes(own_bytes, ranks, members_.rank(), call_plan);
  set_record(call_plan);
  for (CallPlan::OnChannel& channel : call_plan.on_channels) channel.is_current = channel.has_program = false;
}

void PlanMaker::fill(CallPlan& call_plan, const CallDescription& call) const {
  const int ranks = members_.ranks();
  call_plan.spec = call.spec;
  call_plan.leaves = call.intervals();
  call_plan.block_counts.clear();
  if (const std::size_t* const counts = call.block_counts(); counts != nullptr) {
    call_plan.block_counts.assign(counts, counts + ranks);
  }
  call_plan.sums_as_float = runs_as_float(call.spec);
  call_plan.input_shift_bytes = call_plan.result_shift_bytes = 0;
  call_plan.folds_leaves = false;
  CallShape& shape = call_plan.shape;
  shape.type = call_plan.sums_as_float ? Type::f32 : call.spec.type;
  shape.element_bytes = own_element_bytes(call.spec);
  shape.unit_bytes = unit_bytes_of(shape.element_bytes);
  const bool folds = combines(call.spec.collective) && call.spec.op != OpNumber::user;
  shape.fold = folds ? kernels::find(op_of(call.spec), shape.type, members_.context().isa()) : nullptr;
  set_lengths(call_plan);
  set_end(members_.rank(), ranks, call_plan);
  set_counts(call_plan, call_plan.selected->holds, ranks);
}

void PlanMaker::set_count(CallPlan& call_plan, std::size_t count) const noexcept {
  call_plan.spec.count = count;
  set_lengths(call_plan);
}

}  // namespace torii
