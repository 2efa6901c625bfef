// SPDX-License-Identifier: Apache-2.0
// The receiver's side: takes messages out of slots, brings sends and receives together, and fetches their bytes.
#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/point_to_point/point_to_point.hpp"

namespace torii {
namespace {

Envelope envelope_of(const PairStreams& streams, const Heading& heading) noexcept {
  return {.from = streams.rank(), .tag = heading.tag, .type = heading.type, .bytes = heading.bytes};
}

bool is_possible(const Heading& heading, const Arrived& message) noexcept {
  return heading.tag >= 0 && (heading.kind != MessageKind::whole || heading.bytes <= message.payload_most);
}

}  // namespace

/// Takes the messages of the peer that have come, so many at most, so that other peers get their turn. Never waits. A
/// message that no receive wants yet is kept, so that answers, which come the same way, are never held up.
bool PointToPoint::drain(Peer& peer) {
  constexpr int kMessagesInTurn = 8;
  bool moved = false;
  for (int taken = 0; taken < kMessagesInTurn && call_.status == Status::ok; ++taken) {
    const Arrived message = peer.streams->arrived(call_);
    if (message.heading == nullptr) break;
    Heading heading;
    std::memcpy(&heading, message.heading, sizeof(heading));
    understand(peer, heading, message);
    if (call_.status != Status::ok) return true;
    peer.streams->take(call_, message);
    moved = true;
  }
  return moved;
}

/// Only a whole send for this receive is taken, while no other one waits to be matched. All else is left to start() and
/// progress(). So is a receive now and then, since messages of other peers get their turn there.
bool PointToPoint::receives_at_once(Receive& receive) noexcept {
  constexpr int kInTurn = 64;
  if (received_at_once_ == kInTurn || receive.from == rank_ || receive.from == kAnyRank || !matching_.is_empty())
    return false;
  Peer& peer = *peer_of(receive.from);
  if (peer.streams->remote()) return false;
  const Arrived message = peer.streams->arrived(call_);
  if (message.heading == nullptr) return false;
  Heading heading;
  std::memcpy(&heading, message.heading, sizeof(heading));
  const Envelope envelope = envelope_of(*peer.streams, heading);
  if (heading.kind != MessageKind::whole || !is_possible(heading, message) || !receive.accepts(envelope) ||
      !receive.has_room_for(envelope)) {
    return false;
  }
  ++received_at_once_;
  receive.envelope = envelope;
  if (envelope.bytes != 0) kernels::copy(receive.data, message.payload, envelope.bytes, false);
  peer.streams->take(call_, message);
  return true;
}

void PointToPoint::understand(Peer& peer, const Heading& heading, const Arrived& message) {
  switch (heading.kind) {
    case MessageKind::whole:
    case MessageKind::announcement:
      return take_envelope(peer, heading, message);
    case MessageKind::part:
      return take_part(peer, heading, message);
    case MessageKind::request:
    case MessageKind::receipt:
      return answer(peer, heading);
  }
  fail(Status::transport, peer.streams->context_rank(),
       "it sends a message of kind " + std::to_string(static_cast<int>(heading.kind)) + ", and there are 1 to 5");
}

void PointToPoint::take_envelope(Peer& peer, const Heading& heading, const Arrived& message) {
  Arrival arrival;
  arrival.envelope = envelope_of(*peer.streams, heading);
  arrival.is_whole = heading.kind == MessageKind::whole;
  if (!is_possible(heading, message)) {
    return fail(Status::transport, peer.streams->context_rank(),
                "it sends " + std::to_string(heading.bytes) + " bytes at once with tag " + std::to_string(heading.tag) +
                    ", and there is room for " + std::to_string(message.payload_most));
  }
  Receive* const receive = matching_.take_receive(arrival.envelope);
  if (!arrival.is_whole) {
    arrival.reach = heading.reach == kInArena || heading.reach == kReadable ? OfferKind{heading.reach} : kByValue;
    std::memcpy(&arrival.announced, message.payload, sizeof(arrival.announced));
    if (receive != nullptr) return meet(*receive, arrival);
  } else if (receive != nullptr) {
    // The usual case: the bytes go from the slot to where they are wanted.
    if (!fits(*receive, arrival.envelope)) return;
    if (heading.bytes != 0) kernels::copy(receive->data, message.payload, heading.bytes, false);
    return end(*receive, peer.streams->remote());
  } else {
    arrival.bytes.assign(message.payload, message.payload + heading.bytes);
  }
  matching_.keep(std::move(arrival));
}

/// Whether the receive can take that send. If not, nothing can go on: the sender believes that its bytes are wanted.
bool PointToPoint::fits(Receive& receive, const Envelope& envelope) {
  receive.envelope = envelope;
  if (receive.has_room_for(envelope)) return true;
  mismatched_ = receive;
  const Peer* const peer = peer_of(envelope.from);
  fail(Status::mismatch, peer == nullptr ? call_.transport.rank() : peer->streams->context_rank(), {});
  finish(receive, Status::mismatch);
  return false;
}

void PointToPoint::meet(Receive& receive, const Arrival& arrival) {
  if (!fits(receive, arrival.envelope)) {
    if (arrival.own != nullptr) finish(*arrival.own);
    return;
  }
  if (!arrival.is_whole) return meet_announced(receive, arrival);
  const std::byte* const from = arrival.own != nullptr ? arrival.own->data : arrival.bytes.data();
  if (arrival.envelope.bytes != 0) kernels::copy(receive.data, from, arrival.envelope.bytes, false);
  if (arrival.own != nullptr) finish(*arrival.own);
  finish(receive);
}

/// Both ranks of a node can reach the bytes if they are in the sender's arena, or if the operating system lets this
/// rank read the sender's memory. Otherwise they come in parts.
void PointToPoint::meet_announced(Receive& receive, const Arrival& arrival) {
  Peer& peer = *peer_of(arrival.envelope.from);
  const int rank = peer.streams->context_rank();
  const Announced& announced = arrival.announced;
  if (arrival.reach == kInArena && !peer.streams->remote()) {
    const std::uint64_t arena_bytes = call_.transport.arena_bytes();
    if (arrival.envelope.bytes > arena_bytes || announced.place > arena_bytes - arrival.envelope.bytes) {
      return fail(Status::transport, rank,
                  "it says that " + std::to_string(arrival.envelope.bytes) + " bytes of its send stand at offset " +
                      std::to_string(announced.place) + " of its arena, which has " + std::to_string(arena_bytes) +
                      " bytes");
    }
    const auto from = reinterpret_cast<std::uintptr_t>(call_.transport.mapped(rank, announced.place));
    reads_.push_back({&receive, &peer, announced.number, from, false});
  } else if (arrival.reach == kReadable && !peer.streams->remote() && call_.transport.readable(rank)) {
    reads_.push_back({&receive, &peer, announced.number, static_cast<std::uintptr_t>(announced.place), true});
  } else {
    return request(receive, peer, announced.number);
  }
  (void)read_portions();
}

/// The bytes come in parts, from the first one on.
void PointToPoint::request(Receive& receive, Peer& peer, std::uint64_t number) {
  receive.got_bytes = 0;
  peer.requested.push_back(&receive);
  peer.outgoing.push_back({.kind = MessageKind::request, .number = number});
  (void)flush(peer);
}

void PointToPoint::take_part(Peer& peer, const Heading& heading, const Arrived& message) {
  const int rank = peer.streams->context_rank();
  if (peer.requested.empty()) return fail(Status::transport, rank, "it sends bytes that nobody has requested");
  Receive& receive = *peer.requested.front();
  const std::size_t left = receive.envelope.bytes - receive.got_bytes;
  if (heading.bytes == 0 || heading.bytes > std::min(left, message.payload_most)) {
    return fail(
        Status::transport, rank,
        "it sends a part of " + std::to_string(heading.bytes) + " bytes where " + std::to_string(left) + " are left");
  }
  kernels::copy(receive.data + receive.got_bytes, message.payload, heading.bytes, false);
  receive.got_bytes += heading.bytes;
  if (receive.got_bytes != receive.envelope.bytes) return;
  peer.requested.pop_front();
  end(receive, peer.streams->remote());
}

/// One portion of each read, so that long ones do not hold up others. A sender whose call has failed is told so, and
/// its caller may change the bytes. Then this rank waits, until it learns of the failure itself.
bool PointToPoint::read_portions() {
  std::size_t kept = 0;
  bool moved = false;
  for (std::size_t i = 0; i < reads_.size(); ++i) {
    const Read read = reads_[i];
    if (call_.status != Status::ok || read.peer->streams->words().has_peer_withdrawn()) {
      reads_[kept++] = read;
      continue;
    }
    moved = true;
    Receive& receive = *read.receive;
    const std::size_t bytes = portion_bytes(receive.got_bytes, receive.envelope.bytes);
    std::byte* const to = receive.data + receive.got_bytes;
    const std::uintptr_t from = read.from + receive.got_bytes;
    if (read.is_private) {
      const int rank = read.peer->streams->context_rank();
      const Status status = call_.transport.read(rank, from, to, bytes);
      // The kernel may have come to refuse, and some memory is only for its own process.
      if (status == Status::unsupported || status == Status::transport) {
        request(receive, *read.peer, read.number);
        continue;
      }
      call_.note(status, rank);
    } else {
      kernels::copy(to, reinterpret_cast<const void*>(from), bytes, false);
    }
    if (call_.status != Status::ok || read.peer->streams->words().has_peer_withdrawn()) {
      reads_[kept++] = read;
      continue;
    }
    receive.got_bytes += bytes;
    if (receive.got_bytes != receive.envelope.bytes) {
      read.peer->streams->words().tell_reading();
      reads_[kept++] = read;
      continue;
    }
    read.peer->outgoing.push_back({.kind = MessageKind::receipt, .receive = &receive, .number = read.number});
    (void)flush(*read.peer);
  }
  reads_.resize(kept);
  return moved;
}

}  // namespace torii
