// SPDX-License-Identifier: Apache-2.0
// Sends and receives between pairs of ranks, with tags. Nothing is agreed on before: a send and a receive meet at the
// receiver, whichever is there first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/point_to_point/matching.hpp"
#include "runtime/point_to_point/messages.hpp"
#include "runtime/point_to_point/operations.hpp"
#include "runtime/point_to_point/pair_area.hpp"
#include "runtime/rings/channel_rings.hpp"

namespace torii {

/// For one thread. Nothing moves but inside its functions, of this rank and, for sends that are not short, of the
/// receiver. Memory of the caller's is written by its own rank only: a receiver fetches, a sender never stores there.
class PointToPoint {
 public:
  /// Members of this node may be told without put() (Transport::sleeping()).
  PointToPoint(Transport& transport, const PairArea& area, const RingMembers& members);
  PointToPoint(const PointToPoint&) = delete;
  PointToPoint& operator=(const PointToPoint&) = delete;

  /// Begins the operation, which must stay where it is until it is done; it may be done at once.
  void start(Send& send) noexcept;
  void start(Receive& receive) noexcept;
  /// For callers that wait: the whole operation at once, and nothing is kept of it. False if it has to be started: it
  /// cannot end now, or it might overtake another one.
  bool sends_at_once(int to, const Envelope& envelope, const std::byte* data) noexcept;
  bool receives_at_once(Receive& receive) noexcept;
  /// Takes a receive back that has met no send. False if it has met one: it will then be done.
  bool withdraw(Receive& receive) noexcept;
  /// True if something moved.
  bool progress() noexcept;
  /// All operations that are not done end with this status. No other function is called afterwards.
  void abandon(Status status) noexcept;

  /// Bad once an operation cannot go on: `failed_peer()` is the rank in the context with which, refusal() says why.
  /// With status mismatch, mismatched() is the receive that has met a send which does not fit; its envelope is the
  /// send's.
  Status status() const noexcept { return call_.status; }
  int failed_peer() const noexcept { return call_.failed_peer; }
  const std::string& refusal() const noexcept { return refusal_; }
  const Receive& mismatched() const noexcept { return mismatched_; }
  /// Operations that are not done.
  int open() const noexcept { return open_; }
  /// Those of them that are receives which have met no send.
  int unmet() const noexcept { return static_cast<int>(matching_.posted().size()); }
  /// Those that have been done since the last time, the last one first.
  PairOperation* take_done() noexcept { return std::exchange(done_, nullptr); }
  /// The owner of the puts that engines still hold, when the team ends.
  PutOwner take_puts() noexcept { return std::move(call_.puts); }

 private:
  /// A message that this rank has still to send to a peer.
  struct Outgoing {
    MessageKind kind = MessageKind::whole;
    Send* send = nullptr;        ///< whole, announcement, part
    Receive* receive = nullptr;  ///< receipt: done when the receipt has left, since this rank may make no more calls
    std::uint64_t number = 0;    ///< request, receipt
    std::size_t sent_bytes = 0;
    /// The bytes behind the heading of the next message of it; at most `most` of a send's.
    std::size_t payload_bytes(std::size_t most) const noexcept {
      if (send == nullptr) return 0;
      return kind == MessageKind::announcement ? sizeof(Announced) : std::min(send->envelope.bytes - sent_bytes, most);
    }
  };
  struct Peer {
    explicit Peer(std::unique_ptr<PairStreams> made) noexcept : streams(std::move(made)) {}
    /// Whether a message may be sent now: there is room, and nothing has to leave before it.
    bool may_send(const RunningCall& call, std::size_t bytes) noexcept {
      return outgoing.empty() && streams->may_send(call, bytes);
    }
    std::unique_ptr<PairStreams> streams;
    std::deque<Outgoing> outgoing;    ///< in the order in which it leaves
    std::deque<Send*> announced;      ///< sends whose bytes the peer has not taken
    std::uint64_t announcements = 0;  ///< so far
    std::deque<Receive*> requested;   ///< receives whose bytes come in parts, in that order
  };
  /// A receiver reads the bytes of a send where they are.
  struct Read {
    Receive* receive;
    Peer* peer;
    std::uint64_t number;
    std::uintptr_t from;
    bool is_private;
  };

  template <class Body>
  bool has_memory(Body&& body) noexcept;
  Peer* peer_of(int rank) noexcept;
  void begin(Send& send);
  void begin_own(Send& send);
  bool drain(Peer& peer);
  void understand(Peer& peer, const Heading& heading, const Arrived& message);
  void take_envelope(Peer& peer, const Heading& heading, const Arrived& message);
  void take_part(Peer& peer, const Heading& heading, const Arrived& message);
  void answer(Peer& peer, const Heading& heading);
  void meet(Receive& receive, const Arrival& arrival);
  void meet_announced(Receive& receive, const Arrival& arrival);
  void request(Receive& receive, Peer& peer, std::uint64_t number);
  bool fits(Receive& receive, const Envelope& envelope);
  bool flush(Peer& peer);
  bool tell(Peer& peer, Outgoing& next);
  bool read_portions();
  bool finish_leaving() noexcept;
  void add(PairOperation& operation) noexcept;
  void end(PairOperation& operation, bool remote);
  void finish(PairOperation& operation, Status status = Status::ok) noexcept;
  void fail(Status status, int context_rank, std::string text);

  RunningCall call_;
  const int rank_;
  const std::size_t whole_most_;  ///< bytes of a send that goes whole, and of a part
  std::vector<Peer> peers_;
  bool has_distant_ = false;  ///< of the peers some are on other nodes
  Matching matching_;
  int received_at_once_ = 0;  ///< since the last progress()
  std::vector<Read> reads_;
  std::vector<PairOperation*> leaving_;  ///< all is put, but engines still hold what this rank has to move on
  PairOperation* first_open_ = nullptr;  ///< of those that are not done: abandon() finds each, whatever list lost it
  int open_ = 0;
  PairOperation* done_ = nullptr;
  std::string refusal_;
  Receive mismatched_;
};

}  // namespace torii
