// SPDX-License-Identifier: Apache-2.0
// From a call to its class. The options of a team are checked in plan_options.cpp; plan_filling.cpp fills in call
// plans.
#include "api/calls/plan_maker.hpp"

#include <algorithm>
#include <limits>

#include "reduce_kernels/average.hpp"
#include "runtime/base/status.hpp"
#include "runtime/execution/installed_plan.hpp"

namespace torii {
namespace {

void check_user(const kernels::UserFunction* user) {
  if (user == nullptr || user->call == nullptr) invalid("op is user, but no user function is given");
  if (user->element_bytes != 0 && user->element_bytes <= kernels::kUserElementBytesMax) return;
  invalid("user_bytes is " + std::to_string(user->element_bytes) + "; it must be from 1 to " +
          std::to_string(kernels::kUserElementBytesMax));
}

void check_types(const CallSpec& spec) {
  const char* reason = multiplies(spec) ? kernels::why_no_factor(spec.type)
                       : averages(spec) ? kernels::why_no_average(spec.type)
                                        : kernels::why_not(op_of(spec), spec.type);
  if (reason != nullptr) {
    invalid("op " + std::string(name(spec.op)) + " is not defined for type " + std::string(name(spec.type)) + ": " +
            reason);
  }
  if (averages(spec) && is_prefix(spec.collective)) {
    invalid("op avg is not defined for " + std::string(name(spec.collective)) +
            ": every rank combines another number of operands there; use allreduce, reduce or reduce_scatter");
  }
}

void check_sizes(const CallSpec& spec, std::size_t unit_bytes, int ranks) {
  const bool is_one_block = has_block_per_rank(spec.collective) && !spec.has(CallMark::block_counts);
  const std::size_t parts = is_one_block ? static_cast<std::size_t>(ranks) : 1;
  constexpr std::size_t kMost = std::numeric_limits<std::ptrdiff_t>::max() / 2;
  if (spec.count > kMost / unit_bytes / parts) {
    invalid("count is " + std::to_string(spec.count) + ", whose bytes on " + std::to_string(ranks) +
            " ranks overflow; the most is " + std::to_string(kMost / unit_bytes / parts));
  }
  if (has_root(spec.collective) && (spec.root < 0 || spec.root >= ranks)) {
    invalid("root is " + std::to_string(spec.root) + "; it must be from 0 to " + std::to_string(ranks - 1));
  }
}

void check_leaves(const CallSpec& spec, const LeafIntervals& leaves, int ranks) {
  if (!combines(spec.collective) || is_prefix(spec.collective)) {
    invalid("leaves are set, but " + std::string(name(spec.collective)) +
            " has none; use them with allreduce, reduce or reduce_scatter");
  }
  if (multiplies(spec)) {
    invalid("op premul_sum is not defined over leaves, which share the factor of their rank; multiply the leaves");
  }
  if (leaves.ranks() != ranks) {
    invalid("the leaves are those of a team of " + std::to_string(leaves.ranks()) + " ranks, but there are " +
            std::to_string(ranks));
  }
}

std::string name_of(const Selected& selected, Widening widening) {
  const PlanRequest& request = selected.request;
  // The binding names all fields, so a new one does not compile until it is a part of the name.
  const auto& [segment_bytes, slots, window, one_shot, radix, common_root, lanes] = request.tuning;
  return std::string(selected.algorithm->name) + ' ' + std::string(name(request.collective)) + ' ' +
         std::to_string(request.root) + ' ' + std::to_string(static_cast<int>(widening)) + ' ' +
         std::to_string(segment_bytes) + ' ' + std::to_string(slots) + ' ' + std::to_string(window) + ' ' +
         std::to_string(one_shot) + ' ' + std::to_string(radix) + ' ' + std::to_string(common_root) + ' ' +
         std::string(name(request.determinism)) + ' ' +
         std::to_string(request.leaves == nullptr ? 0 : request.leaves->digest()) + ' ' +
         std::string(lanes.begin(), lanes.end());
}

}  // namespace

Plan fitting_plan(Selected& selected, int rank, std::size_t unit_bytes, Widening widening, const RingSizes& rings) {
  const Algorithm& algorithm = *selected.algorithm;
  Tuning& tuning = selected.request.tuning;
  if (!rings.several_nodes()) tuning.slots = std::min(tuning.slots, rings.entries);
  const std::size_t grain = std::max<std::size_t>(64, unit_bytes);
  while (true) {
    Plan plan = algorithm.plan(selected.request, rank);
    const RingNeeds needs = {slots_least(algorithm, selected.request),
                             pair_streams_most(algorithm, selected.request, plan)};
    if (binds_to_rings(plan, needs, tuning.segment_bytes, widening, rings)) return plan;
    const int distant_size = distant_size_of(plan, tuning.segment_bytes, widening);
    const int slots = slots_counted(rings.of(ring_kind(plan, distant_size)));
    if (!plan.exchange.exists() && needs.slots_least > slots && slots < tuning.slots) {
      tuning.slots = slots;
      continue;
    }
    if (needs.pair_streams > rings.streams_most()) {
      throw Error(Status::internal, std::string(algorithm.name) + " has " + std::to_string(needs.pair_streams) +
                                        " streams between two ranks, which have rings for " +
                                        std::to_string(rings.streams_most()));
    }
    if (tuning.segment_bytes <= grain) {
      throw Error(Status::no_resource,
                  "the plan of " + std::string(algorithm.name) + " does not fit into the team's standing rings, with " +
                      std::to_string(plan.slots) + " slots, " + std::to_string(plan.out_streams_max) +
                      " streams and an outbox of " + std::to_string(rings.outbox_bytes) +
                      " bytes; make TORII_SLOTS or TORII_CHANNELS smaller, or TORII_ARENA larger where the fabric pins "
                      "it");
    }
    tuning.segment_bytes = std::max(round_up(tuning.segment_bytes / 2, grain), grain);
  }
}

PlanRequest PlanMaker::request_of(const CallSpec& spec, const ClassKey& key) const {
  PlanRequest request;
  const bool is_gathered_unequally = key.unequal && key.collective == Collective::all_gather;
  request.collective = is_gathered_unequally ? Collective::alltoall : key.collective;
  request.topology = rules_.topology;
  request.root = key.root;
  request.determinism = determinism_of(spec);
  request.wide_wire = key.widening != Widening::none;
  if (key.leaves != nullptr && !key.leaves->is_one_subtree_each()) request.leaves = key.leaves;
  return request;
}

bool PlanMaker::sums_travel_as_float(const CallSpec& spec) const noexcept {
  return combines(spec.collective) && spec.op != OpNumber::user && is_small_float(spec.type) &&
         (rules_.wide_wire || determinism_of(spec) == Determinism::canonical);
}

/// An average is rounded when it has been divided, and so are sums of which ranks have folded a part. These calls run
/// as calls of float.
bool PlanMaker::runs_as_float(const CallSpec& spec) const noexcept {
  const bool is_folded = spec.has(CallMark::leaves) && !spec.has(CallMark::one_leaf_each);
  return (averages(spec) || is_folded) && sums_travel_as_float(spec);
}

/// The library's own calls take neither the team's tune table nor a forced choice.
Selected PlanMaker::select_for(const CallSpec& spec, const PlanRequest& request, std::size_t total_bytes) const {
  const bool is_internal = spec.has(CallMark::internal);
  const bool is_own = rules_.own_tune_table != nullptr && !is_internal;
  try {
    return select(is_own ? *rules_.own_tune_table : members_.context().tune_table(),
                  is_internal ? Forced{} : rules_.forced, request,
                  spec.has(CallMark::unequal) ? kUnequalBytes : total_bytes, members_.several_nodes(),
                  members_.transport().capabilities().put_bytes);
  } catch (const Error& error) {
    if (!is_ordered(spec) || rules_.determinism == Determinism::canonical || spec.has(CallMark::leaves)) throw;
    throw Error(error.status(),
                error.what() + std::string("; an operation that does not commute runs at canonical, in the order of "
                                           "ranks: set commutes, on all ranks, if this one does"));
  }
}

ClassKey PlanMaker::key_of(const CallDescription& call) const {
  // The binding names all fields, so a new one does not compile until it is a part of the key, or is known not to
  // change the plan: operation, count, tag and, for block counts, content.
  const auto& [collective, type, op, marks, root, count, user_bytes, tag, content] = call.spec;
  if (op == OpNumber::user) {
    check_user(call.user());
  } else if (combines(collective)) {
    check_types(call.spec);
  }
  if (call.spec.has(CallMark::leaves)) check_leaves(call.spec, *call.intervals(), members_.ranks());
  const std::size_t element_bytes = own_element_bytes(call.spec);
  if (element_bytes == 0) invalid("type " + std::to_string(static_cast<int>(type)) + " is unknown");
  const std::size_t unit_bytes = unit_bytes_of(element_bytes);
  check_sizes(call.spec, unit_bytes, members_.ranks());
  ClassKey key;
  if (unit_bytes > 64) key.long_unit_bytes = unit_bytes;
  key.collective = collective;
  key.root = root;
  key.determinism = determinism_of(call.spec);
  if (sums_travel_as_float(call.spec) && !runs_as_float(call.spec)) key.widening = widening_of(type);
  key.unequal = call.spec.has(CallMark::unequal);
  key.has_counts = call.spec.has(CallMark::block_counts);
  key.is_internal = call.spec.has(CallMark::internal);
  key.leaves = call.intervals();
  return key;
}

/// Lengths of their own do not enter a plan: it is the one for long blocks, whatever they are.
std::size_t PlanMaker::vector_bytes(const CallSpec& spec, const ClassKey& key) const noexcept {
  const std::size_t bytes = spec.count * unit_bytes_of(own_element_bytes(spec));
  const bool is_one_block = has_block_per_rank(key.collective) && !key.has_counts;
  return is_one_block ? bytes * static_cast<std::size_t>(members_.ranks()) : bytes;
}

std::unique_ptr<CallClass> PlanMaker::make_class(const CallSpec& spec, const ClassKey& key) const {
  Selected selected = select_for(spec, request_of(spec, key), vector_bytes(spec, key));
  PlanRequest& request = selected.request;
  const std::size_t unit_bytes = std::max<std::size_t>(1, key.long_unit_bytes);
  request.tuning.segment_bytes = round_up(request.tuning.segment_bytes, unit_bytes);
  const std::size_t most = members_.transport().capabilities().put_bytes_most;
  if (most != 0 && request.tuning.segment_bytes > most) request.tuning.segment_bytes = most / unit_bytes * unit_bytes;
  Plan plan = fitting_plan(selected, members_.rank(), unit_bytes, key.widening, rules_.rings);
  auto made = std::make_unique<CallClass>();
  made->key = key;
  const bool may_be_unequal = plan.blocks == members_.ranks() && plan.bundle_max == 1;
  std::string name = name_of(selected, key.widening);
  made->selected = std::make_shared<const ClassPlan>(
      ClassPlan{std::move(selected), key.widening, std::move(plan), std::move(name), may_be_unequal});
  return made;
}

std::unique_ptr<CallClass> PlanMaker::share_class(const CallSpec& spec, const ClassKey& key) const {
  if (key.leaves != nullptr) return make_class(spec, key);
  if (auto selected = known_->find(key, vector_bytes(spec, key))) {
    auto known = std::make_unique<CallClass>();
    known->key = key;
    known->selected = std::move(selected);
    return known;
  }
  auto made = make_class(spec, key);
  known_->add(*made);
  return made;
}

std::unique_ptr<CallPlan> PlanMaker::blank(const CallSpec& spec, const CallClass& its_class) const {
  auto call_plan = std::make_unique<CallPlan>();
  call_plan->selected = its_class.selected;
  const bool are_told = spec.has(CallMark::unequal) && !its_class.selected->plan.exchange.exists();
  if (are_told) call_plan->lengths = make_lengths(spec, its_class);
  return call_plan;
}

std::unique_ptr<CallPlan> PlanMaker::make(const CallDescription& call) const {
  const auto its_class = make_class(call.spec, key_of(call));
  auto call_plan = blank(call.spec, *its_class);
  fill(*call_plan, call);
  return call_plan;
}

/// The broadcast by which the root tells the lengths. Throws Error{unsupported} where the plan cannot have blocks of
/// unequal lengths.
std::unique_ptr<CallPlan> PlanMaker::make_lengths(const CallSpec& spec, const CallClass& its_class) const {
  const bool is_known_to_root = spec.collective == Collective::scatter || spec.collective == Collective::gather;
  if (!is_known_to_root || !its_class.selected->may_be_unequal) {
    throw Error(Status::unsupported, std::string(its_class.selected->algorithm->name) +
                                         " has no plan for blocks of unequal lengths; use direct, or auto");
  }
  CallDescription telling;
  telling.spec = {.collective = Collective::broadcast,
                  .type = Type::u64,
                  .root = spec.root,
                  .count = static_cast<std::uint64_t>(members_.ranks())};
  telling.spec.set(CallMark::internal);
  return make(telling);
}

}  // namespace torii
