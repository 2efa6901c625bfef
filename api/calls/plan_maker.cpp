// SPDX-License-Identifier: Apache-2.0
// From a call to its class. The options of a team are checked in plan_options.cpp; plan_filling.cpp fills in call
// plans.
#include "api/calls/plan_maker.hpp"

#include <algorithm>
#include <limits>

#include "reduce_kernels/average.hpp"
#include "runtime/base/status.hpp"

namespace torii {
namespace {

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
  request.topology = rules_.topology;
  request.root = has_root(arguments.collective) ? arguments.root : 0;
  request.determinism = determinism_of(arguments);
  request.wide_wire = wide;
  if (arguments.leaves != nullptr && !arguments.leaves->is_one_subtree_each()) request.leaves = arguments.leaves;
  return request;
}

bool PlanMaker::sums_travel_as_float(const CallArguments& arguments) const noexcept {
  return combines(arguments.collective) && arguments.user.call == nullptr && is_small_float(arguments.type) &&
         (rules_.wide_wire || determinism_of(arguments) == Determinism::canonical);
}

/// An average is rounded when it has been divided, and so are sums of which ranks have folded a part. These calls run
/// as calls of float.
bool PlanMaker::runs_as_float(const CallArguments& arguments) const noexcept {
  const bool is_folded = arguments.leaves != nullptr && !arguments.leaves->is_one_each();
  return (arguments.averages || is_folded) && sums_travel_as_float(arguments);
}

/// The library's own calls take neither the team's tune table nor a forced choice.
Selected PlanMaker::select_for(const CallArguments& arguments, const PlanRequest& request,
                               std::size_t total_bytes) const {
  const bool is_own = rules_.own_tune_table != nullptr && !arguments.is_internal;
  try {
    return select(is_own ? *rules_.own_tune_table : members_.context().tune_table(),
                  arguments.is_internal ? Forced{} : rules_.forced, request,
                  arguments.unequal ? kUnequalBytes : total_bytes, members_.several_nodes(),
                  members_.transport().capabilities().put_bytes);
  } catch (const Error& error) {
    if (!is_ordered(arguments) || rules_.determinism == Determinism::canonical || arguments.leaves != nullptr) throw;
    throw Error(error.status(),
                error.what() + std::string("; an operation that does not commute runs at canonical, in the order of "
                                           "ranks: set commutes, on all ranks, if this one does"));
  }
}

ClassKey PlanMaker::key_of(const CallArguments& arguments) const {
  check_types(arguments);
  if (arguments.leaves != nullptr) check_leaves(arguments, members_.ranks());
  const std::size_t element_bytes = own_element_bytes(arguments);
  if (element_bytes == 0) invalid("type " + std::to_string(static_cast<int>(arguments.type)) + " is unknown");
  const std::size_t unit_bytes = unit_bytes_of(element_bytes);
  check_sizes(arguments, unit_bytes, members_.ranks());
  ClassKey key;
  if (unit_bytes > 64) key.long_unit_bytes = unit_bytes;
  key.collective = arguments.collective;
  key.root = has_root(arguments.collective) ? arguments.root : 0;
  key.determinism = determinism_of(arguments);
  if (sums_travel_as_float(arguments) && !runs_as_float(arguments)) key.widening = widening_of(arguments.type);
  key.unequal = arguments.unequal;
  key.has_counts = arguments.block_counts != nullptr;
  key.is_internal = arguments.is_internal;
  key.leaves = arguments.leaves;
  return key;
}

/// Lengths of their own do not enter a plan: it is the one for long blocks, whatever they are.
std::size_t PlanMaker::vector_bytes(const CallArguments& arguments, const ClassKey& key) const noexcept {
  const std::size_t bytes = (key.unequal ? 0 : arguments.count) * unit_bytes_of(own_element_bytes(arguments));
  const bool is_one_block = has_block_per_rank(key.collective) && !key.has_counts;
  return is_one_block ? bytes * static_cast<std::size_t>(members_.ranks()) : bytes;
}

std::unique_ptr<CallClass> PlanMaker::make_class(const CallArguments& arguments, const ClassKey& key) const {
  Selected selected =
      select_for(arguments, request_of(arguments, key.widening != Widening::none), vector_bytes(arguments, key));
  PlanRequest& request = selected.request;
  const std::size_t unit_bytes = std::max<std::size_t>(1, key.long_unit_bytes);
  request.tuning.segment_bytes = round_up(request.tuning.segment_bytes, unit_bytes);
  const bool is_forced = rules_.forced.segment_bytes != 0 && !key.is_internal;
  const StagingLimit limit = {rules_.staging_bytes, key.widening, members_.several_nodes()};
  const Plan plan = is_forced ? selected.algorithm->plan(request, members_.rank())
                              : fitting_plan(selected, members_.rank(), unit_bytes, limit);
  auto made = std::make_unique<CallClass>();
  made->key = key;
  const bool may_be_unequal = plan.blocks == members_.ranks() && plan.bundle_max == 1;
  made->selected = std::make_shared<const ClassPlan>(
      ClassPlan{std::move(selected), key.widening, plan.blocks, plan.dealing, plan.exchange.exists(), may_be_unequal});
  return made;
}

std::unique_ptr<CallClass> PlanMaker::share_class(const CallArguments& arguments, const ClassKey& key) const {
  if (key.leaves != nullptr) return make_class(arguments, key);
  if (auto selected = known_->find(key, vector_bytes(arguments, key))) {
    auto known = std::make_unique<CallClass>();
    known->key = key;
    known->selected = std::move(selected);
    return known;
  }
  auto made = make_class(arguments, key);
  known_->add(*made);
  return made;
}

std::unique_ptr<CallPlan> PlanMaker::blank(const CallArguments& arguments, const CallClass& its_class) const {
  auto call_plan = std::make_unique<CallPlan>();
  call_plan->selected = its_class.selected;
  if (arguments.unequal && !its_class.selected->is_exchange) call_plan->lengths = make_lengths(arguments, its_class);
  return call_plan;
}

std::unique_ptr<CallPlan> PlanMaker::make(const CallArguments& arguments) const {
  const auto its_class = make_class(arguments, key_of(arguments));
  auto call_plan = blank(arguments, *its_class);
  fill(*call_plan, arguments);
  return call_plan;
}

/// The broadcast by which the root tells the lengths. Throws Error{unsupported} where the plan cannot have blocks of
/// unequal lengths.
std::unique_ptr<CallPlan> PlanMaker::make_lengths(const CallArguments& arguments, const CallClass& its_class) const {
  const bool is_known_to_root =
      arguments.collective == Collective::scatter || arguments.collective == Collective::gather;
  if (!is_known_to_root || !its_class.selected->may_be_unequal) {
    throw Error(Status::unsupported, std::string(its_class.selected->algorithm->name) +
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
