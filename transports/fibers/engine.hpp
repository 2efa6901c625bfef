// SPDX-License-Identifier: Apache-2.0
// An engine on the wires between fibers, for EngineTransport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "runtime/fabric/transport.hpp"
#include "transports/fibers/wires.hpp"
#include "transports/network/peer_states.hpp"
#include "transports/network/sleepers.hpp"

namespace torii::fibers {

class Engine final : public WireEnd {
 public:
  /// `peers` and `sleepers` are the transport's.
  Engine(Wires& wires, int number, int rank, std::byte* arena, transports::PeerStates& peers,
         transports::Sleepers& sleepers);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Status put(const Put& put) noexcept;
  Status put_word(int peer, std::uint64_t offset, std::uint64_t value) noexcept;
  bool progress() noexcept;
  bool drained() noexcept;
  void flush() noexcept;
  bool confirmed() noexcept;
  void greet(int peer) noexcept { say(peer, Message::Kind::greeting); }
  bool is_greeted(int peer) const noexcept { return end_of(peer).greeted; }
  void take_leave(int peer) noexcept { say(peer, Message::Kind::farewell); }
  bool has_left(int peer) const noexcept { return end_of(peer).left; }
  /// Connections break by themselves when a process ends.
  static bool probe(int, std::int64_t) noexcept { return true; }
  void doubt(int peer, std::int64_t now_ns) noexcept;
  /// A payload of which a part has been stored.
  bool is_arriving(std::uint64_t offset, std::size_t bytes) const noexcept;
  void close() noexcept;
  int wait_descriptor() const noexcept { return descriptor_; }
  bool may_sleep(int&) const noexcept { return inbox_.empty(); }

  void receive(std::unique_ptr<Message> message) override;
  void left(const Message& message) noexcept override;

 private:
  struct Peer {
    std::size_t in_flight = 0;
    std::uint32_t asked = 0;
    std::uint32_t answered = 0;
    bool used = false;
    bool is_doubted = false;
    bool greeted = false;
    bool left = false;
  };
  Peer& end_of(int peer) noexcept { return ends_[static_cast<std::size_t>(peer)]; }
  const Peer& end_of(int peer) const noexcept { return ends_[static_cast<std::size_t>(peer)]; }
  void say(int peer, Message::Kind kind) noexcept;
  Status send(std::unique_ptr<Message> message) noexcept;
  void take(const Message& message) noexcept;
  void begin_store(std::unique_ptr<Message> message);
  void end_store(const Message& message) noexcept;
  void lose(int peer) noexcept;

  Wires& wires_;
  int number_;
  int rank_;
  std::byte* arena_;
  transports::PeerStates& peers_;
  transports::Sleepers& sleepers_;
  int descriptor_;
  bool is_closed_ = false;
  std::vector<Peer> ends_;
  std::deque<std::unique_ptr<Message>> inbox_;
  std::vector<Message*> leaving_;
  std::vector<const Message*> arriving_;
  bool has_stored_ = false;                                        ///< since the last progress()
  std::shared_ptr<bool> is_there_ = std::make_shared<bool>(true);  ///< for events that come after this object
};

}  // namespace torii::fibers
