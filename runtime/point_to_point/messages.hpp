// SPDX-License-Identifier: Apache-2.0
// The messages of point-to-point transfers, and the two streams between a rank and a peer that carry them.
//
// A short send travels whole, in one message. A longer one is announced: its bytes stay with the sender until a receive
// has met it. The receiver then reads them where they are and sends a receipt, or requests them, and they come in
// parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/execution/running_call.hpp"
#include "runtime/plan/transfer_rules.hpp"

namespace torii {

enum class MessageKind : std::uint8_t {
  whole = 1,     ///< an envelope and all bytes
  announcement,  ///< an envelope, and where the bytes are
  request,       ///< of the receiver: send the bytes of announcement `bytes` in parts
  part,          ///< the next bytes of the first request that is not complete
  receipt,       ///< of the receiver: it has read the bytes of announcement `bytes`
};

/// At the beginning of each message.
struct Heading {
  MessageKind kind = MessageKind::whole;
  std::uint8_t reach = kByValue;  ///< announcement: an OfferKind
  std::uint16_t type = 0;
  std::int32_t tag = 0;
  std::uint64_t bytes = 0;  ///< of the whole send or of the part; request and receipt: the announcement's number
};
/// Follows the heading of an announcement.
struct Announced {
  std::uint64_t number = 0;  ///< among those of the sender to this receiver, from 0 on
  std::uint64_t place = 0;   ///< kInArena: an offset in the sender's arena; kReadable: an address of its process
};
static_assert(sizeof(Heading) + sizeof(Announced) <= kInlineBytes, "announcements fit into the signal's line");

/// A pairwise exchange of all ranks without transfers: its streams are those of point-to-point messages.
Plan pair_plan(int rank, int ranks);
/// The payload of a slot. All slots of a rank together take at most 1 MiB, or 64 bytes each.
std::size_t pair_slot_bytes(int ranks) noexcept;

/// The streams of a rank to and from one peer. Messages are sent, and taken, in the order of their numbers.
class PairStreams {
 public:
  PairStreams(ExchangePeer& peer, std::size_t slot_bytes) noexcept : peer_(&peer), slot_bytes_(slot_bytes) {}

  int rank() const noexcept { return peer_->rank; }
  int context_rank() const noexcept { return peer_->context_rank; }
  bool remote() const noexcept { return peer_->remote; }
  /// The most bytes that follow a heading.
  std::size_t payload_most() const noexcept { return slot_bytes_ - sizeof(Heading); }

  bool may_send(const RunningCall& call) const noexcept {
    return peer_->out.ring.may_fill(call, call.slots, peer_->sent);
  }
  /// May be called if may_send(). `bytes` follow the heading.
  void send(RunningCall& call, const Heading& heading, const void* payload, std::size_t bytes) noexcept;

  /// The next message, if it has come: its heading. nullptr otherwise.
  const std::byte* arrived(const RunningCall& call) const noexcept;
  /// Gives the slot of the message that has arrived back.
  void take(RunningCall& call) noexcept;

  // Words between ranks of one node, in the lines that offers of an exchange would have.
  /// This rank has failed: what it has announced is no longer there. Its caller may change the bytes from now on.
  void withdraw_announcements() noexcept;
  /// Asked after bytes that the peer has announced were read: they are right if this is false.
  bool has_peer_withdrawn() const noexcept;
  /// Tells the peer that its bytes are being read, and asks whether it has told so since the last time.
  void tell_reading() noexcept;
  bool is_peer_reading() noexcept;

 private:
  ExchangePeer* peer_;
  std::size_t slot_bytes_;
  std::uint64_t reads_told_ = 0;
  std::uint64_t reads_seen_ = 0;
};

}  // namespace torii
