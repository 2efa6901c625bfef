// SPDX-License-Identifier: Apache-2.0
// Finds a step's operands and targets.
#include "runtime/execution/step_places.hpp"

namespace torii {
namespace {

alignas(64) thread_local std::byte hot_value[2 * StepPlaces::kHotBytes];

}  // namespace

std::byte* StepPlaces::hot_memory() noexcept { return hot_value; }

/// True when an earlier target of this step has stored the payload for the whole group.
bool StepPlaces::is_stored_already(const InstalledOut& out, std::size_t bytes) noexcept {
  if (out.leader < 0 || Ring::is_inline(bytes)) return false;
  std::uint64_t& last = stored_in_step_[static_cast<std::size_t>(out.leader)];
  if (last == step_count_) return true;
  last = step_count_;
  return false;
}

StepPlaces::Place StepPlaces::source_place(const StreamEnd& end, const Step& step) const noexcept {
  if (end.stream == kOwn) return {.base = call_.own_base(true, step.block) + call_.operand_distance(end.position)};
  const InstalledIn& in = call_.plan->in[end.stream];
  switch (in.stream.delivery) {
    case Delivery::local:
      return {.base = call_.buffers.result};
    case Delivery::write_in_place:
      if (call_.buffers.result_reachable && !in.ring.remote()) return {.base = call_.buffers.result};
      break;
    case Delivery::read_in_place: {
      if (in.ring.remote()) break;
      const BufferOffers::PeerBuffer& from = offers_.of(in.offer);
      const std::uintptr_t input = from.input + call_.operand_distance(in.stream.operand_of(end.position));
      if (from.input_readable) return {.base = input, .reader_of = in.ring.peer()};
      if (from.input_in_place) return {.base = input, .peers = true};
      break;
    }
    case Delivery::through_slots:
      break;
  }
  const std::byte* at = call_.message_payload(in, end, step);
  return {
      .base = reinterpret_cast<std::uintptr_t>(at), .packed = true, .wide = in.stream.wide && call_.plan->is_wide()};
}

/// A base of 0 means that nothing is stored there.
StepPlaces::Place StepPlaces::target_place(const StreamEnd& end, const Step& step) noexcept {
  const InstalledOut& out = call_.plan->out[end.stream];
  if (out.stream.delivery == Delivery::local) return {};
  if (call_.is_read_in_place(out)) return {};
  if (out.stream.delivery == Delivery::write_in_place && !out.ring.remote()) {
    const BufferOffers::PeerBuffer& to = offers_.of(out.offer);
    if (to.result_in_place) {
      return {.base = to.result, .non_temporal = call_.shape->non_temporal, .peers = true};
    }
  }
  if (leaves_from_vector(out)) return {};
  if (is_stored_already(out, call_.message_bytes(out.stream, step))) return {};
  const std::byte* at = call_.message_payload(out, end, step);
  return {.base = reinterpret_cast<std::uintptr_t>(at),
          .packed = true,
          .wide = out.stream.wide && call_.plan->is_wide(),
          .peers = !out.ring.remote()};
}

/// The address from which engines may send the step's value: the own operand, or the result that the step keeps or has
/// kept. nullptr if the value is nowhere in one piece, or no rank on another node needs it.
const std::byte* StepPlaces::sendable(const Step& step) const noexcept {
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

void StepPlaces::begin() noexcept {
  step_count_ = 0;
  stored_in_step_.assign(call_.plan->out.size(), 0);
}

void StepPlaces::find(const Step& step) noexcept {
  const Flow& flow = *step.flow;
  sendable_ = nullptr;
  peers_bytes_ = 0;
  target_places_.clear();
  source_places_.clear();
  if (flow.sources.empty()) return;
  sendable_ = sendable(step);
  ++step_count_;
  for (const StreamEnd& end : flow.sources) source_places_.push_back(source_place(end, step));
  // Engines read it shortly.
  const bool stays_cached = sendable_ != nullptr;
  const Place kept = {.base = call_.own_base(false, step.block),
                      .non_temporal = call_.shape->non_temporal && !stays_cached};
  // A single source that is in the result already is kept as it is. A peer's private vector may have the same address.
  const bool stands =
      source_places_.size() == 1 && source_places_[0].in_own_vector() && source_places_[0].base == kept.base;
  if (flow.keep && !stands) target_places_.push_back(kept);
  for (const StreamEnd& end : flow.targets) {
    const Place place = target_place(end, step);
    if (place.base == 0) continue;
    target_places_.push_back(place);
    if (place.peers) peers_bytes_ += call_.message_bytes(call_.plan->out[end.stream].stream, step);
  }
  sources_.resize(source_places_.size());
  targets_.resize(target_places_.size());
}

StoreChoice& StepPlaces::stores_of(const Step& step) const noexcept {
  const bool in_place = std::ranges::any_of(target_places_, [](const Place& at) { return at.peers && !at.packed; });
  return in_place ? step.stores->in_place.of(call_.shape->layout.total_bytes()) : step.stores->slots.of(peers_bytes_);
}

bool StepPlaces::touches_slots_first(const Step& step) const noexcept {
  return std::ranges::any_of(step.flow->targets, [&](const StreamEnd& end) {
    const InstalledOut& out = call_.plan->out[end.stream];
    return call_.touches_first(out.ring, call_.number(out, end, step));
  });
}

bool StepPlaces::read_source(std::size_t bytes, bool into_vector) noexcept {
  std::byte* to = call_.plan->learnt->read_memory();
  for (std::size_t i = targets_.size(); i-- > 0;) {
    const Place& place = target_places_[i];
    if (!place.peers && !place.wide && (into_vector || place.packed)) to = static_cast<std::byte*>(targets_[i]);
  }
  const int peer = source_places_[0].reader_of;
  call_.note(call_.transport.read(peer, reinterpret_cast<std::uintptr_t>(sources_[0]), to, bytes), peer);
  sources_[0] = to;
  return call_.status == Status::ok;
}

}  // namespace torii
