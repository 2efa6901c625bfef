// SPDX-License-Identifier: Apache-2.0
// From a call to its call plan. The options of a team are checked in plan_options.cpp.
#include "api/team/plan_maker.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "api/team/finish.hpp"
#include "api/team/team_control.hpp"
#include "reduce_kernels/average.hpp"
#include "runtime/base/status.hpp"

namespace torii {
namespace {

/// The length that selection assumes for blocks of unequal lengths: more than any vector has.
constexpr std::size_t kUnequalBytes = std::numeric_limits<std::size_t>::max();

std::uint32_t mix(std::uint32_t hash, std::uint64_t value) noexcept {
  // splitmix64's finaliser, folded to 32 bits: calls that differ in one small number get unlike signatures.
  value += 0x9e3779b97f4a7c15ULL + (static_cast<std::uint64_t>(hash) << 32);
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  value ^= value >> 31;
  return static_cast<std::uint32_t>(value ^ (value >> 32));
}

std::size_t element_bytes_of(const CallArguments& arguments) {
  return arguments.user.call != nullptr ? arguments.user.element_bytes : size_of(arguments.type);
}

/// The least power of two not below `bytes`: the size by which a user's element counts when vectors are divided, so
/// that no boundary of blocks, segments or granules cuts an element. Predefined types are powers of two already.
std::size_t unit_bytes_of(std::size_t bytes) {
  std::size_t unit = 1;
  while (unit < bytes) unit *= 2;
  return unit;
}

void check_types(const CallArguments& arguments) {
  if (!combines(arguments.collective)) return;
  if (arguments.op == Op::user) {
    if (arguments.user.call == nullptr) invalid("op is user, but no user function is given");
    if (arguments.user.element_bytes == 0 || arguments.user.element_bytes > kernels::kUserElementBytesMax) {
      invalid("user_bytes is " + std::to_string(arguments.user.element_bytes) + "; it must be from 1 to " +
              std::to_string(kernels::kUserElementBytesMax));
    }
    return;
  }
  const char* reason = arguments.multiplies ? kernels::why_no_factor(arguments.type)
                       : arguments.averages ? kernels::why_no_average(arguments.type)
                                            : kernels::why_not(arguments.op, arguments.type);
  if (reason != nullptr) {
    invalid("op " + std::string(op_name(op_number(arguments))) + " is not defined for type " +
            std::string(name(arguments.type)) + ": " + reason);
  }
  if (!arguments.averages) return;
  if (is_prefix(arguments.collective)) {
    invalid("op avg is not defined for " + std::string(name(arguments.collective)) +
            ": every rank combines another number of operands there; use allreduce, reduce or reduce_scatter");
  }
}

bool has_result(const CallArguments& arguments, int rank) {
  if (arguments.collective == Collective::exscan) return rank != 0;
  if (arguments.block_counts != nullptr) return arguments.block_counts[rank] != 0;
  const bool at_root_only = arguments.collective == Collective::reduce || arguments.collective == Collective::gather;
  return !at_root_only || rank == arguments.root;
}

void check_sizes(const CallArguments& arguments, std::size_t unit_bytes, int ranks) {
  const bool is_one_block = has_block_per_rank(arguments.collective) && arguments.block_counts == nullptr;
  const std::size_t parts = is_one_block ? static_cast<std::size_t>(ranks) : 1;
  constexpr std::size_t kMost = std::numeric_limits<std::ptrdiff_t>::max() / 2;
  if (arguments.count > kMost / unit_bytes / parts) {
    invalid("count is " + std::to_string(arguments.count) + ", whose bytes on " + std::to_string(ranks) +
            " ranks overflow; the most is " + std::to_string(kMost / unit_bytes / parts));
  }
  if (has_root(arguments.collective) && (arguments.root < 0 || arguments.root >= ranks)) {
    invalid("root is " + std::to_string(arguments.root) + "; it must be from 0 to " + std::to_string(ranks - 1));
  }
}

void check_leaves(const CallArguments& arguments, int ranks) {
  const Collective collective = arguments.collective;
  if (!combines(collective) || is_prefix(collective)) {
    invalid("leaves are set, but " + std::string(name(collective)) +
            " has none; use them with allreduce, reduce or reduce_scatter");
  }
  if (arguments.block_counts != nullptr) invalid("leaves are set, but blocks are unequal; use equal blocks");
  if (arguments.multiplies) {
    invalid("op premul_sum is not defined over leaves, which share the factor of their rank; multiply the leaves");
  }
  if (arguments.leaves->ranks() != ranks) {
    invalid("the leaves are those of a team of " + std::to_string(arguments.leaves->ranks()) +
            " ranks, but there are " + std::to_string(ranks));
  }
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
  call_plan.record_count = count_on_record(arguments);
  call_plan.record_kind =
      pack_kind(call_plan.shape.signature, static_cast<std::uint8_t>(arguments.collective),
                static_cast<std::uint8_t>(arguments.type), static_cast<std::uint8_t>(op_number(arguments)));
  if (arguments.is_packed) call_plan.record_kind |= kPacksInRecord;
  if (arguments.leaves != nullptr) call_plan.record_kind |= kLeavesInRecord;
  if (!arguments.commutes) call_plan.record_kind |= kOrderedInRecord;
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

/// What is done when the operation has ended, and which calls can do without it.
void set_end(int rank, int ranks, CallPlan& call_plan) {
  const CallArguments& arguments = call_plan.arguments;
  const bool has_leaves = arguments.leaves != nullptr;
  call_plan.operands = static_cast<std::uint32_t>(has_leaves ? arguments.leaves->leaves() : ranks);
  call_plan.is_finished_at_end =
      call_plan.sums_as_float || needs_finish(arguments, rank, static_cast<int>(call_plan.operands));
  call_plan.multiplies = arguments.multiplies && combines(arguments.collective);
  call_plan.is_plain = is_plain(arguments) && !call_plan.is_finished_at_end;
  call_plan.key = static_cast<int>(arguments.collective) + (has_leaves ? kOneLeafEach : 0);
}

}  // namespace

Plan fitting_plan(Selected& selected, int rank, std::size_t unit_bytes, const StagingLimit& limit) {
  std::size_t& segment_bytes = selected.request.tuning.segment_bytes;
  const std::size_t least_bytes = std::max<std::size_t>(512, unit_bytes);
  while (true) {
    Plan plan = selected.algorithm->plan(selected.request, rank);
    const StagingShape shape = staging_shape(plan, segment_bytes, limit.widening, limit.several_nodes);
    if (shape.total_bytes <= limit.bytes || segment_bytes <= least_bytes) return plan;
    segment_bytes = std::max(round_up(segment_bytes / 2, std::max<std::size_t>(64, unit_bytes)), least_bytes);
  }
}

PlanRequest PlanMaker::request_of(const CallArguments& arguments, bool wide) const {
  PlanRequest request;
  const bool is_gathered_unequally = arguments.unequal && arguments.collective == Collective::all_gather;
  request.collective = is_gathered_unequally ? Collective::alltoall : arguments.collective;
  request.topology = topology_;
  request.root = has_root(arguments.collective) ? arguments.root : 0;
  request.determinism = determinism_of(arguments);
  request.wide_wire = wide;
  if (arguments.leaves != nullptr && !arguments.leaves->is_one_subtree_each()) request.leaves = arguments.leaves;
  return request;
}

bool PlanMaker::sums_travel_as_float(const CallArguments& arguments) const noexcept {
  return combines(arguments.collective) && arguments.user.call == nullptr && is_small_float(arguments.type) &&
         (wide_wire_ || determinism_of(arguments) == Determinism::canonical);
}

/// An average is rounded when it has been divided, and so are sums of which ranks have folded a part: these calls run
/// as calls of float.
bool PlanMaker::runs_as_float(const CallArguments& arguments) const noexcept {
  const bool is_folded = arguments.leaves != nullptr && !arguments.leaves->is_one_each();
  return (arguments.averages || is_folded) && sums_travel_as_float(arguments);
}

/// The library's own calls take neither the team's tune table nor a forced choice.
void PlanMaker::select_for(CallPlan& call_plan, const PlanRequest& request, std::size_t total_bytes) const {
  const CallArguments& arguments = call_plan.arguments;
  const bool is_own = own_tune_table_ != nullptr && !arguments.is_internal;
  try {
    call_plan.selected =
        select(is_own ? *own_tune_table_ : members_.context().tune_table(), arguments.is_internal ? Forced{} : forced_,
               request, arguments.unequal ? kUnequalBytes : total_bytes, members_.several_nodes(),
               members_.transport().capabilities().put_bytes);
  } catch (const Error& error) {
    if (!is_ordered(arguments) || determinism_ == Determinism::canonical || arguments.leaves != nullptr) throw;
    throw Error(error.status(),
                error.what() + std::string("; an operation that does not commute runs at canonical, in the order of "
                                           "ranks: set commutes, on all ranks, if this one does"));
  }
}

std::unique_ptr<CallPlan> PlanMaker::make(const CallArguments& arguments) const {
  const int ranks = members_.ranks();
  check_types(arguments);
  if (arguments.leaves != nullptr) check_leaves(arguments, ranks);
  const bool sums_as_float = runs_as_float(arguments);
  const std::size_t element_bytes = sums_as_float ? sizeof(float) : element_bytes_of(arguments);
  if (element_bytes == 0) invalid("type " + std::to_string(static_cast<int>(arguments.type)) + " is unknown");
  const std::size_t unit_bytes = unit_bytes_of(element_bytes);
  check_sizes(arguments, unit_bytes, ranks);
  auto call_plan = std::make_unique<CallPlan>();
  call_plan->arguments = arguments;
  const bool has_counts = arguments.block_counts != nullptr;
  if (has_counts) {
    call_plan->block_counts.assign(arguments.block_counts, arguments.block_counts + ranks);
    call_plan->arguments.block_counts = call_plan->block_counts.data();
  }
  // Lengths of their own do not enter a plan: it is the one for long blocks, whatever they are.
  const std::size_t block_bytes = (arguments.unequal ? 0 : arguments.count) * unit_bytes;
  const bool per_rank = has_block_per_rank(arguments.collective);
  const std::size_t total_bytes = per_rank && !has_counts ? block_bytes * static_cast<std::size_t>(ranks) : block_bytes;
  if (sums_travel_as_float(arguments) && !sums_as_float) call_plan->widening = widening_of(arguments.type);
  const PlanRequest request = request_of(arguments, call_plan->widening != Widening::none);
  select_for(*call_plan, request, total_bytes);
  std::size_t& segment_bytes = call_plan->selected.request.tuning.segment_bytes;
  segment_bytes = round_up(segment_bytes, unit_bytes);

  const bool is_forced = forced_.segment_bytes != 0 && !arguments.is_internal;
  const Plan plan = is_forced ? call_plan->selected.algorithm->plan(call_plan->selected.request, members_.rank())
                              : fitting_plan(call_plan->selected, members_.rank(), unit_bytes,
                                             {staging_bytes_, call_plan->widening, members_.several_nodes()});
  if (arguments.unequal && !plan.exchange.exists()) {
    call_plan->lengths = make_lengths(arguments, call_plan->selected, plan);
  }
  CallShape& shape = call_plan->shape;
  const std::size_t blocks = static_cast<std::size_t>(plan.blocks);
  const std::size_t even_bytes = round_up((total_bytes + blocks - 1) / blocks, std::max<std::size_t>(128, unit_bytes));
  const Layout::Parts parts = {plan.blocks / ranks, even_bytes};
  shape.layout = has_counts ? layout_of(arguments.block_counts, ranks, parts.count, unit_bytes, segment_bytes)
                 : per_rank ? Layout(total_bytes, plan.blocks, segment_bytes, block_bytes, parts)
                            : Layout(plan.dealing, total_bytes, plan.blocks, segment_bytes, even_bytes);
  shape.type = sums_as_float ? Type::f32 : arguments.type;
  shape.element_bytes = element_bytes;
  shape.unit_bytes = unit_bytes;
  if (combines(arguments.collective) && arguments.user.call == nullptr) {
    shape.fold = kernels::find(arguments.op, shape.type, members_.context().isa());
  }
  shape.user = arguments.user.call != nullptr ? &call_plan->arguments.user : nullptr;
  shape.non_temporal = total_bytes >= kNonTemporalBytes;
  shape.signature = signature_of(*call_plan, request.root);
  const std::size_t own_bytes = (arguments.unequal ? 0 : arguments.count) * element_bytes;
  if (is_personalised(arguments.collective)) shape.block_bytes = own_bytes;
  call_plan->sums_as_float = sums_as_float;
  set_buffer_shapes(arguments, own_bytes, ranks, members_.rank(), *call_plan);
  set_record(*call_plan);
  set_end(members_.rank(), ranks, *call_plan);
  return call_plan;
}

/// The broadcast by which the root tells the lengths. Throws Error{unsupported} where the plan cannot have blocks of
/// unequal lengths.
std::unique_ptr<CallPlan> PlanMaker::make_lengths(const CallArguments& arguments, const Selected& selected,
                                                  const Plan& plan) const {
  const bool is_known_to_root =
      arguments.collective == Collective::scatter || arguments.collective == Collective::gather;
  if (!is_known_to_root || plan.blocks != members_.ranks() || plan.bundle_max != 1) {
    throw Error(Status::unsupported, std::string(selected.algorithm->name) +
                                         " has no plan for blocks of unequal lengths; use direct, or auto");
  }
  CallArguments telling;
  telling.collective = Collective::broadcast;
  telling.count = static_cast<std::size_t>(members_.ranks());
  telling.type = Type::u64;
  telling.root = arguments.root;
  telling.is_internal = true;
  return make(telling);
}

}  // namespace torii
