// SPDX-License-Identifier: Apache-2.0
// Finds a step's operands and targets, and runs kernels over them.
#include "runtime/execution/data_mover.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/base/tuned_constants.hpp"
#include "runtime/fabric/waiting.hpp"

namespace torii {
namespace {

/// A value that goes to several places is computed and copied on in pieces of this size, which stay in the first-level
/// cache between the two.
constexpr auto kHotBytes = tuned<std::size_t>("stores.hot_bytes");

/// A value for several non-temporal targets is computed here, and copied to the targets while it is hot. Targets are
/// rarely aligned alike, so a kernel could use non-temporal stores for one of them only. Wide elements need twice the
/// bytes.
alignas(64) thread_local std::byte hot_value[2 * kHotBytes];

}  // namespace

void fold(const CallShape& shape, const kernels::Operands& operands, std::size_t count, Fold order) noexcept {
  if (shape.user != nullptr) {
    if (order == Fold::canonical) {
      kernels::fold_user_canonical(*shape.user, operands, count);
    } else {
      kernels::fold_user(*shape.user, operands, count);
    }
  } else if (order == Fold::canonical) {
    kernels::fold_canonical(shape.fold, shape.type, operands, count);
  } else {
    shape.fold(operands, count);
  }
}

/// True when an earlier target of this step has stored the payload for the whole group.
bool DataMover::is_stored_already(const InstalledOut& out, std::size_t bytes) noexcept {
  if (out.leader < 0 || Ring::is_inline(bytes)) return false;
  std::uint64_t& last = stored_in_step_[static_cast<std::size_t>(out.leader)];
  if (last == step_count_) return true;
  last = step_count_;
  return false;
}

DataMover::Operand DataMover::source_place(const StreamEnd& end, const Step& step) const noexcept {
  if (end.stream == kOwn) {
    return {.base = call_.own_base(true, step.block) + call_.operand_distance(end.position),
            .callers = call_.buffers.access != nullptr};
  }
  const InstalledIn& in = call_.plan->in[end.stream];
  switch (in.stream.delivery) {
    case Delivery::local:
      return {.base = call_.buffers.result, .callers = call_.buffers.access != nullptr};
    case Delivery::write_in_place:
      if (call_.buffers.result_reachable && !in.ring.remote()) return {call_.buffers.result};
      break;
    case Delivery::read_in_place: {
      if (in.ring.remote()) break;
      const BufferOffers::PeerBuffer& from = offers_.of(in.offer);
      const std::uintptr_t input = from.input + call_.operand_distance(in.stream.operand);
      if (from.input_readable) return {input, false, false, false, false, in.ring.peer()};
      if (from.input_in_place) return {input};
      break;
    }
    case Delivery::through_slots:
      break;
  }
  const std::byte* at = call_.message_payload(in.stream, in.ring, end, step);
  return {reinterpret_cast<std::uintptr_t>(at), true, in.stream.wide && call_.plan->is_wide()};
}

/// A base of 0 means that nothing is stored there.
DataMover::Operand DataMover::target_place(const StreamEnd& end, const Step& step) noexcept {
  const InstalledOut& out = call_.plan->out[end.stream];
  if (out.stream.delivery == Delivery::local) return {};
  if (call_.is_read_in_place(out)) return {};
  if (out.stream.delivery == Delivery::write_in_place && !out.ring.remote()) {
    const BufferOffers::PeerBuffer& to = offers_.of(out.offer);
    if (to.result_in_place) return {to.result, false, false, call_.shape->non_temporal, true};
  }
  if (leaves_from_vector(out)) return {};
  if (is_stored_already(out, call_.message_bytes(out.stream, step))) return {};
  const std::byte* at = call_.message_payload(out.stream, out.ring, end, step);
  return {reinterpret_cast<std::uintptr_t>(at), true, out.stream.wide && call_.plan->is_wide(), false,
          !out.ring.remote()};
}

/// The address from which engines may send the step's value: the own operand, or the result that the step keeps or has
/// kept. nullptr if the value is nowhere in one piece, or no rank on another node needs it.
const std::byte* DataMover::sendable(const Step& step) const noexcept {
  if (!call_.input_sendable && !call_.result_sendable) return nullptr;
  const Flow& flow = *step.flow;
  if (std::ranges::none_of(flow.targets, [this](StreamEnd end) { return call_.plan->out[end.stream].ring.remote(); }))
    return nullptr;
  const std::uint16_t only = flow.sources.size() == 1 ? flow.sources[0].stream : kOwn;
  const bool is_own = flow.sources.size() == 1 && only == kOwn;
  const bool is_kept = flow.keep || (only != kOwn && call_.plan->in[only].stream.delivery == Delivery::local);
  if (!(is_own && call_.input_sendable) && !(is_kept && call_.result_sendable)) return nullptr;
  const std::optional<Piece> piece = call_.shape->layout.single_piece(step.block, step.segment);
  if (!piece || call_.memory_bytes(piece->length_bytes) < kSendableBytesMin) return nullptr;
  std::int64_t offset = call_.buffers.result_offset;
  if (is_own && call_.input_sendable) {
    offset = call_.buffers.input_offset + static_cast<std::int64_t>(call_.operand_distance(flow.sources[0].position));
  }
  return call_.transport.mapped(call_.transport.rank(), 0) + offset + call_.memory_bytes(piece->offset_bytes);
}

void DataMover::begin() noexcept {
  step_count_ = 0;
  stored_in_step_.assign(call_.plan->out.size(), 0);
}

void DataMover::run(const Step& step) noexcept {
  sendable_ = nullptr;
  if (step.flow->sources.empty()) return;
  sendable_ = sendable(step);
  const std::size_t peers_bytes = find_places(step);
  if (target_places_.empty()) return;
  if (call_.buffers.access == nullptr) {
    store_pieces(step, peers_bytes);
    return;
  }
  const std::size_t bytes = call_.memory_bytes(call_.shape->layout.segment_length_bytes(step.block, step.segment));
  TimedChoice& choice = step.stores->functions.of(bytes);
  const TimedChoice::Turn turn = touches_slots_first(step) ? TimedChoice::Turn{choice.best()} : choice.next();
  functions_reach_slots_ = turn.way == 1;
  const std::int64_t begun_ns = turn.timed ? now_ns() : 0;
  store_pieces(step, peers_bytes);
  if (!turn.timed || bytes == 0) return;
  const auto time_ns = static_cast<double>(now_ns() - begun_ns);
  choice.record(turn.way, static_cast<float>(time_ns / static_cast<double>(bytes)));
}

void DataMover::store_pieces(const Step& step, std::size_t peers_bytes) noexcept {
  // Functions load into a slot through the caches.
  const bool functions_store = functions_reach_slots_ && source_places_[0].callers;
  if (peers_bytes < StoreChoice::kBytesMin || functions_store) {
    move_pieces(step);
    if (call_.shape->non_temporal) kernels::store_fence();
    return;
  }
  const bool in_place = std::ranges::any_of(target_places_, [](const Operand& at) { return at.peers && !at.packed; });
  StoreChoice& stores =
      in_place ? step.stores->in_place.of(call_.shape->layout.total_bytes()) : step.stores->slots.of(peers_bytes);
  if (!stores.is_known()) Counters::add(call_.transport.counters().cold_messages);
  const StoreChoice::Turn turn = stores.next(touches_slots_first(step));
  if (turn.way == StoreChoice::Way::non_temporal) {
    for (Operand& place : target_places_) place.non_temporal = place.non_temporal || place.peers;
  }
  // The time of the caller's functions is not that of the stores, so only the stores to the other targets are timed.
  times_copies_ = turn.timed && call_.buffers.access != nullptr;
  copies_ns_ = 0;
  const std::int64_t begun_ns = turn.timed ? now_ns() : 0;
  move_pieces(step);
  // Non-temporal stores are weakly ordered: they must be visible before any signal of this step.
  if (call_.shape->non_temporal || turn.way == StoreChoice::Way::non_temporal) kernels::store_fence();
  if (turn.timed) stores.record(turn.way, times_copies_ ? copies_ns_ : now_ns() - begun_ns, peers_bytes);
  times_copies_ = false;
}

/// Whether a target is a slot in which no message has been.
bool DataMover::touches_slots_first(const Step& step) const noexcept {
  return std::ranges::any_of(step.flow->targets, [&](const StreamEnd& end) {
    const Stream& stream = call_.plan->out[end.stream].stream;
    return call_.number(stream, end, step) < call_.slots.count;
  });
}

/// Finds the step's operands and targets. Returns the number of bytes that it stores into peers' arenas.
std::size_t DataMover::find_places(const Step& step) noexcept {
  const Flow& flow = *step.flow;
  ++step_count_;
  target_places_.clear();
  source_places_.clear();
  for (const StreamEnd& end : flow.sources) source_places_.push_back(source_place(end, step));
  // A single source that is in the result already is kept as it is. A peer's private vector may have the same address.
  const Operand kept = {.base = call_.own_base(false, step.block),
                        // Engines read it shortly.
                        .non_temporal = call_.shape->non_temporal && sendable_ == nullptr,
                        .callers = call_.buffers.access != nullptr};
  const bool stands = source_places_.size() == 1 && !source_places_[0].packed && source_places_[0].reader_of < 0 &&
                      source_places_[0].base == kept.base;
  if (flow.keep && !stands) target_places_.push_back(kept);
  std::size_t peers_bytes = 0;
  for (const StreamEnd& end : flow.targets) {
    const Operand place = target_place(end, step);
    if (place.base == 0) continue;
    target_places_.push_back(place);
    if (place.peers) peers_bytes += call_.message_bytes(call_.plan->out[end.stream].stream, step);
  }
  return peers_bytes;
}

void DataMover::move_pieces(const Step& step) noexcept {
  sources_.resize(source_places_.size());
  targets_.resize(target_places_.size());
  wide_sources_.clear();
  if (std::ranges::any_of(source_places_, &Operand::wide)) {
    for (const Operand& place : source_places_) wide_sources_.push_back(place.wide ? 1 : 0);
  }
  call_.shape->layout.for_each_piece(step.block, step.segment,
                                     [&](const Piece& piece, std::size_t packed_offset_bytes) {
                                       move_piece(piece, packed_offset_bytes, step.flow->fold);
                                     });
}

void DataMover::move_piece(const Piece& piece, std::size_t packed_offset_bytes, Fold order) noexcept {
  const std::size_t offset_bytes = call_.memory_bytes(piece.offset_bytes);
  const std::size_t length_bytes = call_.memory_bytes(piece.length_bytes);
  const std::size_t packed_bytes = call_.memory_bytes(packed_offset_bytes);
  const Widening widening = call_.plan->widening;
  const auto at = [&](const Operand& place, std::size_t done_bytes) {
    if (!place.packed) return place.base + offset_bytes + done_bytes;
    const std::size_t before_bytes = packed_bytes + done_bytes;
    return place.base + (place.wide ? widened(before_bytes, widening) : before_bytes);
  };
  const std::size_t hot_bytes =
      std::max(kHotBytes / call_.shape->element_bytes, std::size_t{1}) * call_.shape->element_bytes;
  const bool by_hot_memory = call_.buffers.access != nullptr && !functions_reach_slots_;
  std::size_t portion_bytes = target_places_.size() == 1 && !by_hot_memory ? length_bytes : hot_bytes;
  const bool reads = source_places_[0].reader_of >= 0;
  if (reads) portion_bytes = PrivateReadChoice::kReadBytes / call_.shape->element_bytes * call_.shape->element_bytes;
  for (std::size_t done = 0; done < length_bytes; done += portion_bytes) {
    const std::size_t bytes = std::min(portion_bytes, length_bytes - done);
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      sources_[i] = reinterpret_cast<const void*>(at(source_places_[i], done));
    }
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      targets_[i] = reinterpret_cast<void*>(at(target_places_[i], done));
    }
    if (reads) read_source(bytes);
    if (call_.status != Status::ok) return;
    if (call_.buffers.access != nullptr) {
      access_portion(offset_bytes + done, bytes);
      continue;
    }
    combine(bytes / call_.shape->element_bytes, order);
  }
}

/// Reads this portion of an operand in a peer's private memory: into the first own target, or else into memory from
/// which it is forwarded. Such an operand is a step's only source.
void DataMover::read_source(std::size_t bytes) noexcept {
  std::byte* to = call_.plan->private_reads.memory.get();
  for (std::size_t i = targets_.size(); i-- > 0;) {
    if (!target_places_[i].peers && !target_places_[i].wide && !target_places_[i].callers)
      to = static_cast<std::byte*>(targets_[i]);
  }
  const int peer = source_places_[0].reader_of;
  call_.note(call_.transport.read(peer, reinterpret_cast<std::uintptr_t>(sources_[0]), to, bytes), peer);
  sources_[0] = to;
}

/// Moves the current portion of a vector that only the caller's functions access, by hot memory or directly
/// (StoreChoices::functions).
void DataMover::access_portion(std::size_t offset_bytes, std::size_t bytes) noexcept {
  const Access& access = *call_.buffers.access;
  const void* value = sources_[0];
  if (source_places_[0].callers) {
    void* const loaded = functions_reach_slots_ ? first_slot() : hot_value;
    access.load(loaded, offset_bytes, bytes, access.data);
    value = loaded;
  }
  const std::int64_t begun_ns = times_copies_ ? now_ns() : 0;
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (target_places_[i].callers || targets_[i] == value) continue;
    kernels::copy(targets_[i], value, bytes, target_places_[i].non_temporal);
  }
  if (times_copies_) copies_ns_ += now_ns() - begun_ns;
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (!target_places_[i].callers) continue;
    if (source_places_[0].packed && !functions_reach_slots_) {
      kernels::copy(hot_value, value, bytes, false);
      value = hot_value;
    }
    access.store(value, offset_bytes, bytes, access.data);
  }
}

/// The first of the current portion's targets that no function stores to; hot memory where there is none.
void* DataMover::first_slot() const noexcept {
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (!target_places_[i].callers) return targets_[i];
  }
  return hot_value;
}

/// Folds the current portion into its targets, wide ones first since a narrow one may be a source in place.
void DataMover::combine(std::size_t count, Fold order) noexcept {
  const std::size_t bytes = count * call_.shape->element_bytes;
  const bool has_wide_source = !wide_sources_.empty();
  for (const bool wide : {true, false}) {
    const std::size_t primary = primary_target(wide);
    if (primary == targets_.size()) continue;
    const bool non_temporal = target_places_[primary].non_temporal;
    const void* value = sources_[0];
    if (sources_.size() != 1 || has_wide_source != wide) {
      // A target that was stored past the caches is not read again.
      void* const folded = non_temporal && targets_.size() > 1 ? hot_value : targets_[primary];
      fold(*call_.shape,
           {.sources = sources_.data(),
            .source_count = static_cast<int>(sources_.size()),
            .targets = &folded,
            .target_count = 1,
            .wide_sources = has_wide_source ? wide_sources_.data() : nullptr,
            .wide_targets = wide ? 1U : 0U,
            .non_temporal_targets = non_temporal && folded != hot_value ? 1U : 0U},
           count, order);
      value = folded;
    }
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      if (target_places_[i].wide != wide || targets_[i] == value) continue;
      kernels::copy(targets_[i], value, wide ? widened(bytes, call_.plan->widening) : bytes,
                    target_places_[i].non_temporal);
    }
  }
}

/// The target of that width to fold into: one that stays in the caches where there is one, since the others are copied
/// from it while it is hot. targets_.size() when there is none.
std::size_t DataMover::primary_target(bool wide) const noexcept {
  std::size_t primary = targets_.size();
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (target_places_[i].wide != wide) continue;
    if (primary == targets_.size() || (target_places_[primary].non_temporal && !target_places_[i].non_temporal))
      primary = i;
  }
  return primary;
}

}  // namespace torii
