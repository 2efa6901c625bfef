// SPDX-License-Identifier: Apache-2.0
// The operations of a pairwise exchange: one sends a part of a block, the other takes it. Included by the schedule's
// own file alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/execution/pairwise_schedule.hpp"
#include "runtime/execution/sending.hpp"

namespace torii {

/// The next part of the block for a peer: a message, a portion of what is written in place, or all that the peer reads.
template <class Host>
class PairwiseSchedule<Host>::SendOperation {
 public:
  SendOperation(PairwiseSchedule& schedule, ExchangePeer& peer, const Turn& turn, const Block& block)
      : schedule_(schedule),
        call_(schedule.call_),
        peer_(peer),
        turn_(turn),
        block_(block),
        bytes_(turn.out_way == Way::through_slots
                   ? std::min(call_.shape->layout.segment_bytes(), block.bytes - turn.out_bytes)
               : turn.out_way == Way::write_in_place ? portion_bytes(turn.out_bytes, block.bytes)
                                                     : block.bytes) {}

  static std::span<const ReceiveRing> sources() noexcept { return {}; }
  std::span<const SendRing> targets() const noexcept { return {&peer_.out.ring, 1}; }
  std::size_t& sources_seen() const noexcept { return seen_; }
  std::size_t bytes() const noexcept { return bytes_; }
  static bool has_arrived(const ReceiveRing&, std::size_t) noexcept { return true; }
  /// A peer that has made its offer has taken all messages before this call: the entry for the one signal of a block
  /// that is written in place is free.
  bool is_free(const SendRing& ring) const noexcept {
    if (turn_.out_way != Way::through_slots) return true;
    if (!ring.remote()) return ring.has_entry(call_, message());
    return ring.may_fill(call_, call_.entries, message()) && call_.has_distant_place(ring, message());
  }
  bool move() const noexcept {
    if (turn_.out_way == Way::write_in_place) {
      schedule_.store_in_peer(reinterpret_cast<std::byte*>(turn_.peer_result + turn_.out_bytes), from(), bytes_,
                              call_.plan->stores[0]->in_place.of(block_.bytes), false);
    } else if (turn_.out_way == Way::through_slots && sendable() == nullptr) {
      std::byte* const to = call_.payload(peer_.out.ring, message(), bytes_);
      if (peer_.remote) {
        kernels::copy(to, from(), bytes_, false);
      } else {
        schedule_.store_in_peer(to, from(), bytes_, call_.plan->stores[0]->slots.of(bytes_),
                                call_.touches_first(peer_.out.ring, message()));
      }
    }
    return true;
  }
  static void skip() noexcept {}
  /// A block that is written in place has one signal: that of its last message.
  void signal(const SendRing& ring) const noexcept {
    const std::uint32_t signature = schedule_.pair_signature(block_.bytes);
    if (turn_.out_way == Way::through_slots) {
      if (!ring.remote()) {
        ring.signal_entry(call_, signature, message(), bytes_);
      } else {
        ring.signal(call_, signature, message(), bytes_, sendable());
      }
    } else if (turn_.out_way == Way::write_in_place && completes_block(turn_.out_bytes, bytes_, block_.bytes)) {
      const std::uint64_t last = peer_.sent + schedule_.messages_of(block_.bytes) - 1;
      if (!ring.remote()) {
        ring.signal_entry(call_, signature, last, block_.bytes);
      } else {
        ring.signal(call_, signature, last, block_.bytes);
      }
    }
  }
  static void release(const ReceiveRing&) noexcept {}

 private:
  std::uint64_t message() const noexcept { return peer_.sent + turn_.out_bytes / call_.shape->layout.segment_bytes(); }
  std::int64_t offset() const noexcept { return block_.offset + static_cast<std::int64_t>(turn_.out_bytes); }
  const std::byte* from() const noexcept {
    return reinterpret_cast<const std::byte*>(call_.buffers.input + static_cast<std::uintptr_t>(offset()));
  }
  /// Where in the own arena an engine may send the message from.
  const std::byte* sendable() const noexcept {
    if (!peer_.remote || !call_.input_sendable || bytes_ < kSendableBytesMin) return nullptr;
    // The sum first: blocks of a list may be anywhere, and only the sum is an offset within the arena.
    return call_.transport.mapped(call_.transport.rank(), 0) + (call_.buffers.input_offset + offset());
  }

  PairwiseSchedule& schedule_;
  RunningCall& call_;
  ExchangePeer& peer_;
  const Turn& turn_;
  Block block_;
  std::size_t bytes_;
  mutable std::size_t seen_ = 0;
};

/// The next part of a peer's block: a message, all that the peer has written in place, or a portion of what is read.
template <class Host>
class PairwiseSchedule<Host>::TakeOperation {
 public:
  TakeOperation(PairwiseSchedule& schedule, ExchangePeer& peer, const Turn& turn, const Block& block)
      : schedule_(schedule),
        call_(schedule.call_),
        peer_(peer),
        turn_(turn),
        block_(block),
        bytes_(turn.in_way == Way::write_in_place ? block.bytes
               : turn.in_way == Way::through_slots
                   ? std::min(call_.shape->layout.segment_bytes(), block.bytes - turn.in_bytes)
                   : portion_bytes(turn.in_bytes, block.bytes)) {}

  std::span<const ReceiveRing> sources() const noexcept { return {&peer_.in.ring, 1}; }
  static std::span<const SendRing> targets() noexcept { return {}; }
  std::size_t& sources_seen() const noexcept { return seen_; }
  std::size_t bytes() const noexcept { return bytes_; }
  bool has_arrived(const ReceiveRing& ring, std::size_t) const noexcept {
    if (turn_.in_way != Way::through_slots && turn_.in_way != Way::write_in_place) return true;
    const std::uint64_t awaited = turn_.in_way == Way::through_slots ? message() : end() - 1;
    return ring.arrived(call_.entries, schedule_.pair_signature(block_.bytes), awaited);
  }
  static bool is_free(const SendRing&) noexcept { return true; }
  bool move() const noexcept {
    if (turn_.in_way == Way::write_in_place) return true;
    auto* const to = reinterpret_cast<std::byte*>(call_.buffers.result + static_cast<std::uintptr_t>(block_.offset) +
                                                  turn_.in_bytes);
    if (turn_.in_way == Way::through_slots) {
      const std::byte* const from = payload();
      if (from == nullptr) return false;
      schedule_.store_in_result(to, from, bytes_);
    } else if (turn_.in_way == Way::read_in_place) {
      schedule_.store_in_result(to, reinterpret_cast<const void*>(turn_.peer_input + turn_.in_bytes), bytes_);
    } else {
      const std::uintptr_t from = turn_.peer_input + turn_.in_bytes;
      call_.note(call_.transport.read(peer_.context_rank, from, to, bytes_), peer_.context_rank);
    }
    return call_.status == Status::ok;
  }
  static void skip() noexcept {}
  static void signal(const SendRing&) noexcept {}
  void release(const ReceiveRing& ring) const noexcept {
    if (turn_.in_way == Way::through_slots) {
      if (!ring.remote()) {
        ring.end().take(message());
        // The sender may have one place alone for the payloads of a long block.
        ring.end().publish(Ring::is_inline(block_.bytes) ? call_.plan->uses.every_entry : 1, call_.transport);
      } else {
        ring.release(call_, message());
      }
      return;
    }
    if (!completes_block(turn_.in_bytes, bytes_, block_.bytes)) return;
    ring.end().take_below(end());
    ring.end().publish(1, call_.transport);
  }

 private:
  /// That of the message that has arrived; nullptr, and the call has failed, if it is said to be outside the sender's
  /// arena.
  const std::byte* payload() const noexcept {
    const ReceiveRing& ring = peer_.in.ring;
    if (ring.remote() || Ring::is_inline(bytes_)) return ring.payload(call_.entries, message(), bytes_);
    const std::uint64_t at = ring.outside_offset(ring.offset(call_.entries, message()));
    return call_.accepts(peer_.context_rank, at, bytes_) ? ring.end().sender_arena + at : nullptr;
  }
  std::uint64_t message() const noexcept { return peer_.taken + turn_.in_bytes / call_.shape->layout.segment_bytes(); }
  /// The first message after this block's.
  std::uint64_t end() const noexcept { return peer_.taken + schedule_.messages_of(block_.bytes); }

  PairwiseSchedule& schedule_;
  RunningCall& call_;
  ExchangePeer& peer_;
  const Turn& turn_;
  Block block_;
  std::size_t bytes_;
  mutable std::size_t seen_ = 0;
};

}  // namespace torii
