// SPDX-License-Identifier: Apache-2.0
// From a call to a plan in place: checks, selection, layout, kernel, staging.
#include <algorithm>
#include <limits>
#include <numeric>

#include "api/team/team.hpp"
#include "runtime/base/cancellation.hpp"
#include "runtime/devices/memory_limits.hpp"

namespace torii {
namespace {

constexpr std::size_t kPreparedMax = 64;
/// What selection takes a call with blocks of unequal lengths for, and more than any vector has.
constexpr std::size_t kUnequalBytes = std::numeric_limits<std::size_t>::max();

std::uint32_t mix(std::uint32_t hash, std::uint64_t value) noexcept {
  // splitmix64's finaliser, folded to 32 bits: calls that differ in one small number get unlike signatures.
  value += 0x9e3779b97f4a7c15ULL + (static_cast<std::uint64_t>(hash) << 32);
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  value ^= value >> 31;
  return static_cast<std::uint32_t>(value ^ (value >> 32));
}

bool same_call(const CallArguments& a, const CallArguments& b, int ranks) noexcept {
  return a.collective == b.collective && a.unequal == b.unequal && (a.unequal || a.count == b.count) &&
         a.type == b.type && a.op == b.op && a.root == b.root && a.user.call == b.user.call &&
         a.user.data == b.user.data && a.user.element_bytes == b.user.element_bytes && a.is_internal == b.is_internal &&
         (a.block_counts == nullptr) == (b.block_counts == nullptr) && a.tag == b.tag &&
         (a.block_counts == nullptr || std::equal(a.block_counts, a.block_counts + ranks, b.block_counts));
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

[[noreturn]] void invalid(const std::string& text) { throw Error(Status::invalid_argument, text); }

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
  const char* reason = kernels::why_not(arguments.op, arguments.type);
  if (reason != nullptr) {
    invalid("op " + std::string(name(arguments.op)) + " is not defined for type " + std::string(name(arguments.type)) +
            ": " + reason);
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

/// What each call has to pass by itself: the rest holds for all calls that are prepared alike.
void check_buffers(const CallArguments& arguments, const Prepared& prepared) {
  const bool has_memory = arguments.access.load == nullptr;
  if (has_memory && prepared.result_bytes != 0 && arguments.result == nullptr)
    invalid("result is NULL, but count is not 0");
  if (prepared.input_bytes != 0 && arguments.input == nullptr && arguments.collective != Collective::broadcast) {
    invalid("input is NULL, but count is not 0 (in place: input == result)");
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

/// Bytes of this rank's buffers, and how far behind byte 0 of the vector they begin.
void set_buffer_shapes(const CallArguments& arguments, std::size_t own_bytes, int ranks, int rank, Prepared& prepared) {
  const std::size_t all_bytes =
      has_block_per_rank(arguments.collective) ? own_bytes * static_cast<std::size_t>(ranks) : own_bytes;
  const auto own_shift = static_cast<std::ptrdiff_t>(own_bytes) * rank;
  const Collective collective = arguments.collective;
  if (const std::size_t* const counts = arguments.block_counts; counts != nullptr) {
    const std::size_t element_bytes = prepared.shape.element_bytes;
    prepared.input_bytes = own_bytes;
    prepared.result_bytes = counts[rank] * element_bytes;
    const std::size_t before = std::accumulate(counts, counts + rank, std::size_t{0});
    prepared.result_shift_bytes = static_cast<std::ptrdiff_t>(before * element_bytes);
    return;
  }
  const bool takes_one = collective == Collective::reduce_scatter || collective == Collective::scatter;
  const bool gives_one = collective == Collective::all_gather || collective == Collective::gather;
  prepared.input_bytes = gives_one ? own_bytes : all_bytes;
  if (collective == Collective::scatter && rank != arguments.root) prepared.input_bytes = 0;
  prepared.result_bytes = !has_result(arguments, rank) ? 0 : takes_one ? own_bytes : all_bytes;
  if (gives_one) prepared.input_shift_bytes = own_shift;
  if (takes_one) prepared.result_shift_bytes = own_shift;
}

void set_board(Prepared& prepared) {
  const CallArguments& arguments = prepared.arguments;
  prepared.board_count = count_on_board(arguments);
  prepared.board_kind = pack_kind(prepared.shape.signature, static_cast<std::uint8_t>(arguments.collective),
                                  static_cast<std::uint8_t>(arguments.type), static_cast<std::uint8_t>(arguments.op));
}

}  // namespace

Plan fitting_plan(Selected& selected, int rank, std::size_t unit_bytes, const StagingLimit& limit) {
  std::size_t& segment_bytes = selected.request.tuning.segment_bytes;
  const std::size_t least_bytes = std::max<std::size_t>(512, unit_bytes);
  while (true) {
    Plan plan = selected.algorithm->plan(selected.request, rank);
    const StagingShape shape = staging_shape(plan, segment_bytes, limit.wide, limit.several_nodes);
    if (shape.total_bytes <= limit.bytes || segment_bytes <= least_bytes) return plan;
    segment_bytes = std::max(round_up(segment_bytes / 2, std::max<std::size_t>(64, unit_bytes)), least_bytes);
  }
}

std::string Team::call_text(const CallArguments& arguments) const {
  std::string text(name(arguments.collective));
  if (arguments.collective == Collective::barrier) return text;
  text += " of " + (count_on_board(arguments) == kUnequalOnBoard ? "unequal blocks" : std::to_string(arguments.count)) +
          " x " + (arguments.user.call != nullptr ? "user type" : std::string(name(arguments.type)));
  if (combines(arguments.collective)) text += ", op " + std::string(name(arguments.op));
  if (has_root(arguments.collective)) text += ", root " + std::to_string(arguments.root);
  return text;
}

Prepared* Team::find_prepared(const CallArguments& arguments) {
  for (const auto& prepared : prepared_) {
    if (same_call(prepared->arguments, arguments, ranks())) return prepared.get();
  }
  auto fresh = make_prepared(arguments);
  // What is dropped here is only quick to find: its plans stay in place. Requests in flight hold pointers, so then none
  // is.
  if (prepared_.size() >= kPreparedMax && in_flight_ == 0) {
    prepared_.erase(prepared_.begin(), prepared_.begin() + kPreparedMax / 2);
  }
  prepared_.push_back(std::move(fresh));
  return prepared_.back().get();
}

Prepared* Team::prepare(Request& request, Status& status) noexcept {
  status = take_blocks(request);
  if (status != Status::ok) return nullptr;
  try {
    if (last_prepared_ == nullptr || !same_call(last_prepared_->arguments, request.arguments, ranks())) {
      const CancellationHeld held;
      last_prepared_ = find_prepared(request.arguments);
    }
    check_buffers(request.arguments, *last_prepared_);
    return last_prepared_;
  } catch (const Error& error) {
    status = error.status();
    set_last_error(error.what());
  } catch (const std::exception& error) {
    status = Status::no_resource;
    set_last_error(error.what());
  }
  return nullptr;
}

std::unique_ptr<Prepared> Team::make_prepared(const CallArguments& arguments) {
  check_types(arguments);
  const std::size_t element_bytes = element_bytes_of(arguments);
  if (element_bytes == 0) invalid("type " + std::to_string(static_cast<int>(arguments.type)) + " is unknown");
  const std::size_t unit_bytes = unit_bytes_of(element_bytes);
  check_sizes(arguments, unit_bytes, ranks());
  auto prepared = std::make_unique<Prepared>();
  prepared->arguments = arguments;
  const bool has_counts = arguments.block_counts != nullptr;
  if (has_counts) {
    prepared->block_counts.assign(arguments.block_counts, arguments.block_counts + ranks());
    prepared->arguments.block_counts = prepared->block_counts.data();
  }
  // Lengths of their own do not enter a plan: it is the one for long blocks, whatever they are.
  const std::size_t block_bytes = (arguments.unequal ? 0 : arguments.count) * unit_bytes;
  const bool per_rank = has_block_per_rank(arguments.collective);
  const std::size_t total_bytes =
      per_rank && !has_counts ? block_bytes * static_cast<std::size_t>(ranks()) : block_bytes;

  PlanRequest request;
  const bool is_gathered_unequally = arguments.unequal && arguments.collective == Collective::all_gather;
  request.collective = is_gathered_unequally ? Collective::alltoall : arguments.collective;
  request.topology = topology_;
  request.root = has_root(arguments.collective) ? arguments.root : 0;
  request.determinism = determinism_;
  prepared->wide = combines(arguments.collective) && arguments.user.call == nullptr &&
                   (arguments.type == Type::f16 || arguments.type == Type::bf16) &&
                   (wide_wire_ || determinism_ == Determinism::canonical);
  request.wide_wire = prepared->wide;
  const bool is_own = own_tune_table_ != nullptr && !arguments.is_internal;
  prepared->selected =
      select(is_own ? *own_tune_table_ : context_.tune_table(), arguments.is_internal ? Forced{} : forced_, request,
             arguments.unequal ? kUnequalBytes : total_bytes, members_.several_nodes(),
             context_.transport().capabilities().put_bytes);
  std::size_t& segment_bytes = prepared->selected.request.tuning.segment_bytes;
  segment_bytes = round_up(segment_bytes, unit_bytes);

  const bool is_forced = forced_.segment_bytes != 0 && !arguments.is_internal;
  const Plan plan = is_forced ? prepared->selected.algorithm->plan(prepared->selected.request, members_.rank())
                              : fitting_plan(prepared->selected, members_.rank(), unit_bytes,
                                             {staging_bytes_, prepared->wide, members_.several_nodes()});
  if (arguments.unequal && !plan.sweep.exists())
    prepared->lengths = prepare_lengths(arguments, prepared->selected, plan);
  CallShape& shape = prepared->shape;
  const std::size_t blocks = static_cast<std::size_t>(plan.blocks);
  const std::size_t even_bytes = round_up((total_bytes + blocks - 1) / blocks, std::max<std::size_t>(128, unit_bytes));
  const Layout::Parts parts = {plan.blocks / ranks(), even_bytes};
  shape.layout = has_counts ? layout_of(arguments.block_counts, ranks(), parts.count, unit_bytes, segment_bytes)
                 : per_rank ? Layout(total_bytes, plan.blocks, segment_bytes, block_bytes, parts)
                            : Layout(plan.dealing, total_bytes, plan.blocks, segment_bytes, even_bytes);
  shape.type = arguments.type;
  shape.element_bytes = element_bytes;
  shape.unit_bytes = unit_bytes;
  if (combines(arguments.collective) && arguments.user.call == nullptr) {
    shape.fold = kernels::find(arguments.op, arguments.type, context_.isa());
  }
  shape.user = arguments.user.call != nullptr ? &prepared->arguments.user : nullptr;
  shape.streaming = total_bytes >= kStreamingBytes;
  std::uint32_t signature = mix(17, static_cast<std::uint64_t>(arguments.collective));
  signature = mix(signature, combines(arguments.collective) ? static_cast<std::uint64_t>(arguments.op) + 1 : 0);
  signature = mix(signature, arguments.unequal ? kUnequalBytes : arguments.count * element_bytes);
  signature = mix(signature, combines(arguments.collective) ? static_cast<std::uint64_t>(arguments.type) + 1 : 0);
  signature = mix(signature, static_cast<std::uint64_t>(request.root));
  for (const std::size_t count : prepared->block_counts) signature = mix(signature, count);
  if (arguments.tag != 0) signature = mix(signature, arguments.tag);
  shape.signature = signature | 1U;

  const std::size_t own_bytes = (arguments.unequal ? 0 : arguments.count) * element_bytes;
  if (is_personalised(arguments.collective)) shape.block_bytes = own_bytes;
  set_buffer_shapes(arguments, own_bytes, ranks(), members_.rank(), *prepared);
  set_board(*prepared);
  const bool is_empty = arguments.count == 0 && arguments.collective != Collective::barrier;
  prepared->is_plain = !arguments.unequal && !has_counts && !arguments.is_internal && arguments.tag == 0 &&
                       arguments.op != Op::user && !is_empty;
  prepared->places.resize(channels_.size());
  return prepared;
}

/// Puts the plan, and the one by which lengths are told, in place on a channel, unless they are there.
void Team::install_on(Prepared& prepared, std::size_t channel) {
  install_one(prepared, channel);
  if (prepared.lengths == nullptr) return;
  install_one(*prepared.lengths, channel);
  // Making room for the second may have taken the first away, and there is room for two.
  install_one(prepared, channel);
}

void Team::install_one(Prepared& prepared, std::size_t channel) {
  if (prepared.places.size() <= channel) prepared.places.resize(channel + 1);
  Prepared::Place& place = prepared.places[channel];
  if (place.plan != nullptr) return;
  const auto set = [&](InstalledPlan* plan) {
    place.plan = plan;
    const CallShape& shape = prepared.shape;
    place.straight = straighten(*plan, shape.layout, shape.unit_bytes, shape.element_bytes, context_.transport());
  };
  const PlanRequest& request = prepared.selected.request;
  const Tuning& tuning = request.tuning;
  const Algorithm* algorithm = prepared.selected.algorithm;
  const std::string key = std::string(algorithm->name) + ' ' + std::string(name(request.collective)) + ' ' +
                          std::to_string(request.root) + ' ' + std::to_string(prepared.wide) + ' ' +
                          std::to_string(tuning.segment_bytes) + ' ' + std::to_string(tuning.slots) + ' ' +
                          std::to_string(tuning.window) + ' ' + std::to_string(tuning.one_shot) + ' ' +
                          std::to_string(tuning.radix) + ' ' + std::string(tuning.lanes.begin(), tuning.lanes.end());
  auto& plans = channels_[channel]->plans;
  if (const auto found = plans.find(key); found != plans.end()) {
    set(found->second.get());
    return;
  }
  Plan plan = algorithm->plan(request, members_.rank());
  const std::size_t bytes =
      staging_shape(plan, tuning.segment_bytes, prepared.wide, members_.several_nodes()).total_bytes;
  if (bytes > staging_bytes_) {
    throw Error(Status::no_resource, "the plan of " + std::string(algorithm->name) + " needs " + std::to_string(bytes) +
                                         " bytes of staging, a team of " + std::to_string(ranks()) + " ranks has " +
                                         std::to_string(staging_bytes_) +
                                         "; make TORII_SEGMENT or TORII_SLOTS smaller, or TORII_ARENA larger where "
                                         "the fabric pins it");
  }
  if (staging_used_bytes_ + bytes > staging_bytes_) recycle_staging();
  reserve_staging(staging_used_bytes_ + bytes);
  Placement placement;
  placement.transport = &context_.transport();
  for (const Member& member : members_.all()) {
    placement.context_ranks.push_back(member.context_rank);
    placement.staging_offsets.push_back(member.memory_offset + control_bytes_ + staging_used_bytes_);
  }
  placement.plan_of = [&](int rank) { return algorithm->plan(request, rank); };
  auto fresh =
      std::make_unique<InstalledPlan>(install(std::move(plan), tuning.segment_bytes, prepared.wide, placement));
  staging_used_bytes_ += bytes;
  staging_touched_bytes_ = std::max(staging_touched_bytes_, staging_used_bytes_);
  log_install(*fresh, key + " on channel " + std::to_string(channel));
  set(plans.emplace(key, std::move(fresh)).first->second.get());
}

/// Forgets all plans in place. Every rank comes here at the same call, since staging is dealt out in the order of
/// calls. First nobody uses the old plans any more, then everybody has cleared its staging, then the next put may come.
/// Where memory is short, takes the pages of this rank's staging up to `end`: running out is then an error of this
/// call, and no signal in the midst of it. Elsewhere pages come when they are touched, since most are never used.
void Team::reserve_staging(std::size_t end) {
  if (end <= staging_touched_bytes_) return;
  const std::size_t all_bytes = context_.own_node_ranks() * staging_bytes_;
  if (memory_limits().left().bytes / 2 >= all_bytes) return;
  context_.staging().reserve(members_.own().memory_offset + control_bytes_ + staging_touched_bytes_,
                             end - staging_touched_bytes_);
}

void Team::recycle_staging() {
  if (channels_.size() - shared_channels_ != free_channels_.size()) {
    throw Error(Status::no_resource,
                "the team's staging is used up while persistent operations hold plans in it; make "
                "fewer of them, or more teams");
  }
  for (const auto& channel : channels_) {
    while (channel->current != nullptr) {
      const Status status = run_to_end(*channel->current);
      if (status != Status::ok) throw Error(status, last_error());
    }
  }
  wait_for_recycled(++recycled_);
  std::byte* staging = context_.transport().mapped(context_.rank(), members_.own().memory_offset) + control_bytes_;
  std::fill(staging, staging + staging_used_bytes_, std::byte{0});
  for (auto& channel : channels_) channel->plans.clear();
  // Emptied, not removed: the place for which this is done is among them, and its caller goes on with it.
  for (auto& prepared : prepared_) {
    for (Prepared::Place& place : prepared->places) place = {};
    if (prepared->lengths == nullptr) continue;
    for (Prepared::Place& place : prepared->lengths->places) place = {};
  }
  staging_used_bytes_ = 0;
  wait_for_recycled(++recycled_);
}

void Team::wait_for_recycled(std::uint64_t epoch) {
  agreement_->put_epoch(epoch);
  for (int member = 0; member < ranks(); ++member) {
    wait_in_start(member, "to recycle staging", [&] { return agreement_->has_reached(member, epoch); });
  }
  agreement_->push_out();
}

}  // namespace torii
