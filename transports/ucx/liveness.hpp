// SPDX-License-Identifier: Apache-2.0
// Whether the peers of an engine exist and have received everything: greetings, farewells, questions and answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transports/ucx/api.hpp"
#include "transports/ucx/message.hpp"
#include "transports/ucx/shared.hpp"
#include "transports/ucx/worker.hpp"
#include "transports/ucx/writes.hpp"

namespace torii::ucx {

/// Not thread-safe: the engine has the lock.
class Liveness {
 public:
  /// Takes the worker's messages that carry no puts. Throws Error.
  Liveness(Worker& worker, Writes& writes, const Shared& shared);
  Liveness(const Liveness&) = delete;
  Liveness& operator=(const Liveness&) = delete;

  /// Tells a peer that this engine exists. This does not count as using the peer.
  void greet(int peer) noexcept;
  bool is_greeted(int peer) const noexcept { return peers_[static_cast<std::size_t>(peer)].greeted; }
  void take_leave(int peer) noexcept { say(peer, kFarewell); }
  bool has_left(int peer) const noexcept { return peers_[static_cast<std::size_t>(peer)].left; }

  /// Asks every peer that received puts to confirm that all have arrived.
  void flush() noexcept;
  bool confirmed() const noexcept;
  /// Another engine has lost the peer. Asks through this engine whether the peer is there. The result is
  /// PeerStates::answered() or cut(), or neither while the peer is in no call.
  void doubt(int peer) noexcept;
  bool owes_answers() const noexcept { return owes_answers_; }
  void give_answers() noexcept;

 private:
  struct Peer {
    std::uint32_t asked = 0;     ///< confirmations requested
    std::uint32_t answered = 0;  ///< and received
    std::uint32_t owed = 0;      ///< answers still to be sent
    bool is_doubted = false;     ///< the last question was sent because another engine has lost the peer
    bool greeted = false;
    bool left = false;
  };

  Peer& of(int peer) noexcept { return peers_[static_cast<std::size_t>(peer)]; }
  void say(int peer, MessageId id) noexcept;
  void ask(int peer) noexcept;
  /// The rank that has sent the message; -1 if no rank sends such a message.
  int sender_of(const void* header, std::size_t header_bytes) noexcept;

  static ucs_status_t on_ask(void* liveness, const void* header, std::size_t header_bytes, void* data,
                             std::size_t bytes, const ucp_am_recv_param_t* how);
  static ucs_status_t on_answer(void* liveness, const void* header, std::size_t header_bytes, void* data,
                                std::size_t bytes, const ucp_am_recv_param_t* how);
  static ucs_status_t on_greeting(void* liveness, const void* header, std::size_t header_bytes, void* data,
                                  std::size_t bytes, const ucp_am_recv_param_t* how);
  static ucs_status_t on_farewell(void* liveness, const void* header, std::size_t header_bytes, void* data,
                                  std::size_t bytes, const ucp_am_recv_param_t* how);

  Worker& worker_;
  Writes& writes_;
  Shared shared_;
  std::vector<Peer> peers_;
  bool owes_answers_ = false;
};

}  // namespace torii::ucx
