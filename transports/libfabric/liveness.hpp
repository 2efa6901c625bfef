// SPDX-License-Identifier: Apache-2.0
// Whether the peers of an engine exist: greetings, farewells, and questions to those that are silent.
#pragma once

#include <cstdint>
#include <vector>

#include "transports/libfabric/own_memory.hpp"
#include "transports/libfabric/shared.hpp"
#include "transports/libfabric/streams.hpp"
#include "transports/libfabric/writes.hpp"

namespace torii::libfabric {

/// Not thread-safe but for is_greeted() and has_left(): the engine has the lock.
class Liveness {
 public:
  Liveness(Writes& writes, const OwnMemory& own, const Shared& shared, const fi_info& info);
  /// `addresses`: by rank, the beginnings of their engines' addresses; whole ones if the provider uses socket
  /// addresses. `needs_parting`: see part().
  void connect(std::vector<SocketAddress> addresses, bool needs_parting);

  /// Peers can be asked by TCP whether they live.
  bool has_listener() const noexcept { return has_listener_; }
  /// The socket addresses of all others; none if the provider uses no such addresses, or without memory.
  std::vector<SocketAddress> addresses_of_peers() const noexcept;

  /// Writes this rank's word into the own memory of a peer. This does not count as using the peer.
  void greet(int peer) noexcept;
  bool is_greeted(int peer) const noexcept { return own_.greeting(peer) != 0; }
  /// Writes another word there, before this rank closes its engines.
  void take_leave(int peer) noexcept { say(peer, kLeaving); }
  bool has_left(int peer) const noexcept { return own_.greeting(peer) >= kLeaving; }
  /// Tells each peer that has left when all that it has sent was taken: `take_all` takes it. True once all peers have
  /// said the same, so that nothing of them is unread or can still come. A farewell carries no notice where ranks part:
  /// all earlier notices precede it, and it leaves none itself.
  template <class TakeAll>
  bool part(const TakeAll& take_all) noexcept {
    bool are_gone = true;
    for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
      const int peer = static_cast<int>(rank);
      if (!peers_[rank].is_greeted || writes_.is_cut(peer)) continue;
      are_gone = are_gone && own_.greeting(peer) == kGone;
      if (peers_[rank].is_told || !has_left(peer)) continue;
      take_all();
      peers_[rank].is_told = true;
      say(peer, kGone);
    }
    return are_gone;
  }
  /// Whether a peer has greeted or was greeted.
  bool knows_anybody() const noexcept;
  /// Whether all of those have said that they took all.
  bool have_all_gone() const noexcept;

  /// Asks every peer that received writes to confirm that all have arrived.
  void flush() noexcept;
  /// Keeps one confirmed write under way. If the answer is late, asks the peer's host whether it still listens. False
  /// if nothing was ever written to the peer through this engine.
  bool probe(int peer, std::int64_t now_ns) noexcept;
  /// Another engine has lost the peer. Asks through this engine whether the peer is there. The result is
  /// PeerStates::answered() or cut(), or neither while the peer is in no call and its host does not say more.
  void doubt(int peer, std::int64_t now_ns) noexcept;
  /// Asks the hosts of peers for which transfers wait. A provider that finds no listener takes nothing more for that
  /// peer, without a report. Transfers to a dead peer that nobody asks about would prevent this rank from ever being
  /// drained.
  void ask_about_waiting(std::int64_t now_ns) noexcept;

 private:
  static constexpr std::uint64_t kHere = 1;
  static constexpr std::uint64_t kLeaving = 2;
  static constexpr std::uint64_t kGone = 3;  ///< the peer has left, and has taken all that this rank has sent

  struct Peer {
    bool is_greeted = false;            ///< by this rank
    bool is_told = false;               ///< that all it has sent was taken
    std::int64_t doubted_ns = 0;        ///< when doubt() asked last
    std::int64_t doubted_since_ns = 0;  ///< and first; 0: never
    std::int64_t probed_ns = 0;
    std::int64_t patience_ns = 0;     ///< how long after probed_ns the peer's host is asked
    std::int64_t waits_since_ns = 0;  ///< since when the provider takes no transfers; 0: none waited at the last look
    std::int64_t waits_patience_ns = 0;  ///< how long after that the peer's host is asked
  };

  Peer& of(int peer) noexcept { return peers_[static_cast<std::size_t>(peer)]; }
  void say(int peer, std::uint64_t greeting) noexcept;
  /// Writes eight bytes into the peer's bell. Their completion says that they and all earlier writes have arrived.
  void send_confirmed(int peer) noexcept;
  /// True if the peer's host says that it listens. If the host says that it does not, the peer is cut off.
  bool ask_listener(int peer) noexcept;

  Writes& writes_;
  const OwnMemory& own_;
  Shared shared_;
  bool has_listener_;
  bool needs_parting_ = false;
  std::vector<SocketAddress> addresses_;
  std::vector<Peer> peers_;
  std::int64_t asked_ns_ = 0;  ///< the last look of ask_about_waiting()
};

}  // namespace torii::libfabric
