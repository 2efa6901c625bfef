// SPDX-License-Identifier: Apache-2.0
// The state of the running call, which all parts of an execution share: its plan, shape and vectors, and the numbers
// and places of messages.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/tuned_constants.hpp"
#include "runtime/execution/engine_picker.hpp"
#include "runtime/execution/installed_plan.hpp"
#include "runtime/execution/private_read.hpp"
#include "runtime/fabric/put_owner.hpp"
#include "runtime/fabric/transport.hpp"
#include "runtime/fabric/words.hpp"
#include "runtime/plan/call.hpp"

namespace torii {

/// A shorter payload is better copied into a send slot, whose line travels in front of it without being gathered.
inline constexpr auto kSendableBytesMin = tuned<std::size_t>("sending.in_place_bytes_min");

/// Stores a message of `bytes` through the caches or past them, whichever is faster now: `store(non-temporal)`.
/// `is_first_touch`: as StoreChoice::next() has it.
template <class Store>
inline void store_and_time(StoreChoice& stores, std::size_t bytes, bool is_first_touch, Counters& counters,
                           Store&& store) noexcept {
  if (!stores.is_known()) Counters::add(counters.cold_messages);
  const StoreChoice::Turn turn = stores.next(is_first_touch);
  const bool non_temporal = turn.way == StoreChoice::Way::non_temporal;
  const std::int64_t begun_ns = turn.timed ? now_ns() : 0;
  store(non_temporal);
  // Non-temporal stores are weakly ordered: they must be visible before any signal of this step.
  if (non_temporal) kernels::store_fence();
  if (turn.timed) stores.record(turn.way, now_ns() - begun_ns, bytes);
}

/// The result of advance(): no step could run, some steps ran, or the last step of the call ran.
enum class Progress { idle, moved, done };

/// The cause for which a rank cannot move.
struct Stall {
  int peer = -1;  ///< rank in the context that it waits for; -1: none
  std::string_view label;
  std::int64_t segment = 0;
};

/// A step of a flow: one segment, one visit of the flow's walk.
struct Step {
  const Flow* flow;
  StoreChoices* stores;
  std::int64_t segment;
  int visit;
  int block;
};

/// A call on standing rings.
struct CallOnRings {
  /// Messages of flows may be too long for their lines, equal on all ranks. True for an exchange: each block tells.
  bool is_long = false;
  bool lacks_room = false;            ///< it has not claimed its extent yet
  bool touches_outbox_first = false;  ///< a part of the extent has never been used
  PlaceOrder places;                  ///< of each ring in the outbox
  std::uint64_t publish_every = 1;    ///< so many messages of a ring are taken before its sender is told
};

/// An offset that a peer has told, and that is outside its arena.
struct RefusedOffset {
  std::uint64_t offset = 0;
  std::size_t bytes = 0;  ///< 0: nothing was refused; a team ends with the first refusal
};

struct RunningCall {
  explicit RunningCall(Transport& transport_used)
      : transport(transport_used), engines(transport_used.capabilities().engines) {}

  Transport& transport;
  InstalledPlan* plan = nullptr;
  const CallShape* shape = nullptr;
  CallBuffers buffers;
  std::uint32_t signature = 1;  ///< of the call, with its salt
  Status status = Status::ok;
  int failed_peer = -1;
  EntryOrder entries;  ///< of a ring
  CallOnRings on_rings;
  // The vectors in the own arena from which engines may send without a copy in this call.
  bool input_sendable = false;
  bool result_sendable = false;
  PrivateRead private_read;
  std::uint32_t turn = 0;  ///< of private reads, for vectors of at least PrivateReadChoice::kBytesMin
  PutOwner puts;
  EnginePicker engines;

  void take_up(InstalledPlan& installed, const CallShape& call_shape, std::uint32_t salt) noexcept {
    plan = &installed;
    shape = &call_shape;
    signature = call_shape.signature ^ salt;
    status = Status::ok;
    failed_peer = -1;
    private_read.forget();
    entries = installed.uses.entries;
    on_rings.is_long = call_shape.layout.longest_bytes() > installed.uses.short_most;
    on_rings.publish_every = installed.uses.every_entry;
    if (on_rings.is_long) {
      on_rings.publish_every = installed.uses.every_payload;
      on_rings.places = installed.uses.places;
      on_rings.lacks_room = !installed.uses.payloads.empty() && !claim_extent();
    }
    for (EngineBalancer& balancer : installed.balancers) balancer.resume();
  }
  /// Takes what a call on standing rings needs of the outbox. False while messages of earlier calls leave no room.
  bool claim_extent() noexcept;
  /// For a call of flows. Every member does so in the same calls.
  void count_turn() noexcept {
    const std::size_t bytes = shape->layout.total_bytes();
    if (bytes >= PrivateReadChoice::kBytesMin) [[unlikely]]
      turn = plan->private_reads.turns->next(bytes);
  }
  /// A step may overwrite an operand in place while an engine has yet to read it for another step. A vector outside
  /// the arena never leaves from where it is: after a call that failed it may be gone while engines still read it.
  void find_sendable(bool operand_in_place_stays, bool result_is_final) noexcept {
    const bool gathers = plan->remote && transport.capabilities().gathers;
    input_sendable = gathers && buffers.input_reachable && (operand_in_place_stays || buffers.input != buffers.result);
    result_sendable = gathers && buffers.result_reachable && result_is_final;
  }
  void note(Status result, int peer) noexcept {
    if (result == Status::ok) return;
    status = result;
    failed_peer = peer;
  }
  /// False while an engine still holds what this call put: nobody may move it on for this rank after the call. Other
  /// puts of this rank do not count: their peers may take nothing for long.
  bool has_drained() const noexcept { return !plan->remote || puts.drained(); }
  /// False: it has not drained.
  bool finish() noexcept {
    if (!has_drained()) return false;
    private_read.end(plan->private_reads.choice);
    end_on_rings(static_cast<std::uint64_t>(shape->layout.segments()));
    plan = nullptr;
    return true;
  }

  /// The number of this call's buffer offers.
  std::uint64_t offer_number() const noexcept { return plan->rings->calls(); }
  /// Peers of the own node read the operand where it is; nothing is sent to them.
  bool is_read_in_place(const InstalledOut& out) const noexcept {
    return out.stream.delivery == Delivery::read_in_place && (buffers.input_reachable || private_read.readable) &&
           !out.ring.remote();
  }
  std::uintptr_t own_base(bool of_input, int block) const noexcept {
    const std::int64_t* const shifts = of_input ? buffers.input_shifts : buffers.result_shifts;
    const std::uintptr_t base = of_input ? buffers.input : buffers.result;
    return shifts == nullptr ? base : base + static_cast<std::uintptr_t>(shifts[block]);
  }
  /// How far behind a rank's first operand its operand of that number is.
  std::size_t operand_distance(int operand) const noexcept {
    return static_cast<std::size_t>(operand) * shape->operand_stride_bytes;
  }
  /// The number of a step's message, or of its bundle, on an InstalledIn or InstalledOut.
  template <class End>
  std::uint64_t number(const End& of, const StreamEnd& end, const Step& step) const noexcept {
    const auto segment = static_cast<std::uint64_t>(step.segment);
    const std::uint64_t position = end.position + static_cast<std::uint64_t>(step.visit);
    const std::uint64_t first = of.ring.first();
    if (of.stream.bundle == 1) {
      return first + segment * static_cast<std::uint64_t>(of.stream.messages_per_segment) + position;
    }
    return first + segment * static_cast<std::uint64_t>(of.stream.bundles_per_segment()) +
           position / static_cast<std::uint64_t>(of.stream.bundle);
  }
  /// The number of the first message after those of the call.
  template <class End>
  std::uint64_t end_number(const End& of) const noexcept {
    return of.ring.first() + static_cast<std::uint64_t>(shape->layout.segments()) *
                                 static_cast<std::uint64_t>(of.stream.bundles_per_segment());
  }
  /// Bytes that `layout_bytes` of the layout take in memory.
  std::size_t memory_bytes(std::size_t layout_bytes) const noexcept {
    return shape->unit_bytes == shape->element_bytes ? layout_bytes
                                                     : layout_bytes / shape->unit_bytes * shape->element_bytes;
  }
  /// Bytes of a step's message on this stream.
  std::size_t message_bytes(const Stream& stream, const Step& step) const noexcept {
    const std::size_t bytes = memory_bytes(shape->layout.segment_length_bytes(step.block, step.segment));
    return stream.wide ? widened(bytes, plan->widening) : bytes;
  }
  /// Bytes of the step's bundle, which has one slot.
  std::size_t bundle_bytes(const Stream& stream, const Step& step) const noexcept {
    return message_bytes(stream, step) * static_cast<std::size_t>(stream.bundle);
  }
  /// Where this step's message is: behind those before it in its bundle.
  template <class End>
  const std::byte* message_payload(const End& of, const StreamEnd& end, const Step& step) const noexcept {
    const std::size_t bytes = message_bytes(of.stream, step);
    const auto bundle = static_cast<std::size_t>(of.stream.bundle);
    const std::size_t before = bundle == 1 ? 0 : static_cast<std::size_t>(end.position + step.visit) % bundle;
    return payload(of.ring, number(of, end, step), bytes * bundle) + before * bytes;
  }
  std::byte* payload(const SendRing& ring, std::uint64_t message, std::size_t bytes) const noexcept {
    if (ring.remote()) return distant_payload(ring, message, bytes);
    if (Ring::is_inline(bytes)) return ring.payload(entries, message, bytes);
    return plan->rings->outbox_memory() + ring.payload_offset(on_rings.places, message);
  }
  /// For another node: what fits into the line leaves at once; the rest stays in the outbox until the call has ended,
  /// behind a line of its own. Places are used again as entries are, or in an exchange that has fewer sooner.
  std::byte* distant_payload(const SendRing& ring, std::uint64_t message, std::size_t bytes) const noexcept {
    if (Ring::is_inline(bytes)) return ring.end().in_line.data();
    const std::uint64_t number = message - ring.first();
    const std::uint64_t place = plan->plan.exchange.exists() ? on_rings.places.of(number) : entries.of(number);
    return plan->rings->outbox_memory() + ring.end().part + place * ring.end().payload_bytes + kLineBytes;
  }
  /// In an exchange, for a message to another node: whether its place in the outbox is free when its entry is.
  bool has_distant_place(const SendRing& ring, std::uint64_t message) const noexcept {
    const std::uint64_t places = on_rings.places.count;
    return message - ring.first() < places || ring.is_taken(entries, message - places);
  }
  const std::byte* payload(const ReceiveRing& ring, std::uint64_t message, std::size_t bytes) const noexcept {
    if (ring.remote() || Ring::is_inline(bytes)) return ring.payload(entries, message, bytes);
    return ring.outside_payload(ring.offset(entries, message));
  }
  /// Whether no message has been at the place of this one before.
  bool touches_first(const SendRing& ring, std::uint64_t message) const noexcept {
    if (ring.remote()) return message < entries.count;
    return on_rings.touches_outbox_first && message - ring.first() < on_rings.places.count;
  }
  /// A peer's memory is accessed at its arena's address plus an offset that the peer tells, so offsets outside the
  /// arena are refused: the call fails. Buffer offers are checked once per call and peer, not per step.
  bool accepts(int peer, std::uint64_t offset, std::size_t bytes) noexcept {
    const std::uint64_t arena_bytes = transport.arena_bytes();
    if (bytes == 0 || arena_bytes == UINT64_MAX) return true;
    if (bytes <= arena_bytes && offset <= arena_bytes - bytes) return true;
    note(Status::transport, peer);
    refused = {offset, bytes};
    return false;
  }
  RefusedOffset refused;  ///< by accepts(), of failed_peer

 private:
  /// The numbers of the next call's messages follow. Whoever has payloads in an outbox is told that they are read.
  void end_on_rings(std::uint64_t segments) noexcept {
    for (const RingUses::Numbering& one : plan->uses.numbering) one.ring->first += one.messages * segments;
    if (on_rings.is_long) {
      for (ReceiveEnd* const ring : plan->uses.incoming) ring->publish(1, transport);
    }
    plan->rings->count_call();
  }
};

/// An entry of a standing ring whose last message has been taken. In the outbox a call's message also has to wait for
/// the one that was so many places before it in this call.
inline bool SendRing::has_entry(const RunningCall& call, std::uint64_t message) const noexcept {
  SendEnd& ring = end();
  const auto is_free = [&](std::uint64_t places) {
    return message < places || ring.is_taken_below(message - places + 1);
  };
  if (call.on_rings.is_long && message - ring.first >= call.on_rings.places.count &&
      !is_free(call.on_rings.places.count)) {
    return false;
  }
  return is_free(call.entries.count);
}

}  // namespace torii
