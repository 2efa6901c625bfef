// SPDX-License-Identifier: Apache-2.0
// The sender's side, and the beginning of operations. The receiver's side has a file of its own.
#include "runtime/point_to_point/point_to_point.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "runtime/point_to_point/distant_streams.hpp"
#include "runtime/point_to_point/pair_rings.hpp"

namespace torii {
namespace {

void send_whole(PairStreams& streams, RunningCall& call, const Envelope& envelope, const std::byte* data) noexcept {
  const Heading heading = {.kind = MessageKind::whole,
                           .reach = kByValue,
                           .type = envelope.type,
                           .tag = envelope.tag,
                           .bytes = envelope.bytes};
  streams.send(call, heading, data, envelope.bytes);
}

}  // namespace

/// A place within the node holds a payload alone. But as much goes whole as between nodes, where the heading is there.
PointToPoint::PointToPoint(Transport& transport, const PairArea& area, const RingMembers& members)
    : call_(transport), rank_(members.rank), whole_most_(area.sizes().place_bytes - sizeof(Heading)) {
  for (int peer = 0; peer < static_cast<int>(members.context_ranks.size()); ++peer) {
    if (peer == rank_) continue;
    if (members.is_distant(peer)) {
      peers_.emplace_back(std::make_unique<DistantStreams>(transport, area, members, peer));
      has_distant_ = true;
    } else {
      peers_.emplace_back(std::make_unique<RingStreams>(transport, area, members, peer));
    }
  }
}

/// Queues take memory of the process. Without it no operation can go on.
template <class Body>
bool PointToPoint::has_memory(Body&& body) noexcept {
  try {
    body();
    return true;
  } catch (const std::bad_alloc&) {
    call_.note(Status::no_resource, call_.transport.rank());
    return false;
  }
}

/// nullptr: the rank itself.
PointToPoint::Peer* PointToPoint::peer_of(int rank) noexcept {
  return rank == rank_ ? nullptr : &peers_[static_cast<std::size_t>(rank - (rank > rank_ ? 1 : 0))];
}

void PointToPoint::start(Send& send) noexcept {
  add(send);
  if (!has_memory([&] { begin(send); })) finish(send, Status::no_resource);
}

bool PointToPoint::sends_at_once(int to, const Envelope& envelope, const std::byte* data) noexcept {
  Peer* const peer = peer_of(to);
  if (peer == nullptr || peer->streams->remote()) return false;
  if (envelope.bytes > whole_most_ || !peer->may_send(call_, envelope.bytes)) return false;
  send_whole(*peer->streams, call_, envelope, data);
  return true;
}

void PointToPoint::begin(Send& send) {
  Peer* const peer = peer_of(send.to);
  if (peer == nullptr) return begin_own(send);
  const bool is_whole = send.envelope.bytes <= whole_most_;
  if (is_whole && peer->may_send(call_, send.envelope.bytes)) {
    send_whole(*peer->streams, call_, send.envelope, send.data);
    return end(send, peer->streams->remote());
  }
  peer->outgoing.push_back({.kind = is_whole ? MessageKind::whole : MessageKind::announcement, .send = &send});
  (void)flush(*peer);
}

/// To itself a rank needs no messages. The bytes of a long send stay where they are until they are received.
void PointToPoint::begin_own(Send& send) {
  Arrival arrival;
  arrival.envelope = send.envelope;
  arrival.own = &send;
  if (Receive* const receive = matching_.take_receive(send.envelope)) return meet(*receive, arrival);
  if (send.envelope.bytes <= whole_most_) {
    arrival.bytes.assign(send.data, send.data + send.envelope.bytes);
    arrival.own = nullptr;
    matching_.keep(std::move(arrival));
    return finish(send);
  }
  matching_.keep(std::move(arrival));
}

void PointToPoint::start(Receive& receive) noexcept {
  add(receive);
  const auto begin = [&] {
    Arrival arrival;
    if (matching_.take_arrival(receive, arrival)) return meet(receive, arrival);
    matching_.post(receive);
  };
  if (!has_memory(begin)) finish(receive, Status::no_resource);
}

bool PointToPoint::withdraw(Receive& receive) noexcept {
  if (!matching_.withdraw(receive)) return false;
  finish(receive, Status::aborted);
  return true;
}

void PointToPoint::add(PairOperation& operation) noexcept {
  ++open_;
  operation.behind = first_open_;
  if (first_open_ != nullptr) first_open_->before = &operation;
  first_open_ = &operation;
}

bool PointToPoint::progress() noexcept {
  received_at_once_ = 0;
  bool moved = false;
  if (has_distant_) call_.note(call_.transport.progress(), -1);
  (void)has_memory([&] {
    for (Peer& peer : peers_) {
      if (call_.status != Status::ok) return;
      if (drain(peer)) moved = true;
      if (!peer.outgoing.empty() && flush(peer)) moved = true;
      if (!peer.announced.empty() && peer.streams->words().is_peer_reading()) moved = true;
    }
    if (!reads_.empty() && read_portions()) moved = true;
    if (!leaving_.empty() && finish_leaving()) moved = true;
  });
  return moved || call_.status != Status::ok;
}

/// Sends what there is room for.
bool PointToPoint::flush(Peer& peer) {
  bool moved = false;
  while (!peer.outgoing.empty() && call_.status == Status::ok &&
         peer.streams->may_send(call_, peer.outgoing.front().payload_bytes(whole_most_))) {
    if (tell(peer, peer.outgoing.front())) peer.outgoing.pop_front();
    moved = true;
  }
  return moved;
}

/// Sends one message. True if nothing is left of `next`.
bool PointToPoint::tell(Peer& peer, Outgoing& next) {
  Heading heading;
  heading.kind = next.kind;
  if (next.send == nullptr) {
    heading.bytes = next.number;
    peer.streams->send(call_, heading, nullptr, 0);
    if (next.receive != nullptr) finish(*next.receive);
    return true;
  }
  Send& send = *next.send;
  const std::size_t bytes = send.envelope.bytes;
  if (next.kind == MessageKind::part) {
    heading.bytes = next.payload_bytes(whole_most_);
    peer.streams->send(call_, heading, send.data + next.sent_bytes, heading.bytes);
    next.sent_bytes += heading.bytes;
    if (next.sent_bytes != bytes) return false;
    end(send, peer.streams->remote());
    return true;
  }
  if (next.kind == MessageKind::whole) {
    send_whole(*peer.streams, call_, send.envelope, send.data);
    end(send, peer.streams->remote());
    return true;
  }
  heading.type = send.envelope.type;
  heading.tag = send.envelope.tag;
  heading.bytes = bytes;
  Announced announced;
  send.number = announced.number = peer.announcements++;
  if (!peer.streams->remote()) {
    heading.reach = send.reachable ? kInArena : kReadable;
    announced.place = send.reachable ? static_cast<std::uint64_t>(send.offset)
                                     : static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(send.data));
  }
  peer.announced.push_back(&send);
  peer.streams->send(call_, heading, &announced, sizeof(announced));
  return true;
}

/// The peer wants the bytes of an announced send, or has read them.
void PointToPoint::answer(Peer& peer, const Heading& heading) {
  const auto found = std::ranges::find(peer.announced, heading.bytes, &Send::number);
  if (found == peer.announced.end()) {
    return fail(Status::transport, peer.streams->context_rank(),
                "it answers send " + std::to_string(heading.bytes) + ", which was not announced to it");
  }
  Send& send = **found;
  peer.announced.erase(found);
  if (heading.kind == MessageKind::receipt) return finish(send);
  peer.outgoing.push_back({.kind = MessageKind::part, .send = &send});
}

/// Over a network what this rank has put, messages and credits, moves on only while this rank makes calls.
void PointToPoint::end(PairOperation& operation, bool remote) {
  if (remote) return leaving_.push_back(&operation);
  finish(operation);
}

void PointToPoint::finish(PairOperation& operation, Status status) noexcept {
  if (operation.done) return;
  --open_;
  if (operation.before != nullptr) operation.before->behind = operation.behind;
  if (operation.behind != nullptr) operation.behind->before = operation.before;
  if (first_open_ == &operation) first_open_ = operation.behind;
  operation.done = true;
  operation.status = status;
  operation.next_done = std::exchange(done_, &operation);
}

bool PointToPoint::finish_leaving() noexcept {
  if (!call_.puts.drained()) return false;
  for (PairOperation* const operation : leaving_) finish(*operation);
  leaving_.clear();
  return true;
}

void PointToPoint::fail(Status status, int context_rank, std::string text) {
  if (call_.status != Status::ok) return;
  call_.note(status, context_rank);
  refusal_ = std::move(text);
}

void PointToPoint::abandon(Status status) noexcept {
  for (Peer& peer : peers_) {
    peer.streams->words().withdraw_announcements();
    peer.outgoing.clear();
    peer.announced.clear();
    peer.requested.clear();
  }
  reads_.clear();
  leaving_.clear();
  matching_.clear();
  while (first_open_ != nullptr) finish(*first_open_, status);
}

}  // namespace torii
