// SPDX-License-Identifier: Apache-2.0
// A network between fibers: what engines have sent and peers have not yet received, and what goes wrong on the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/fabric/transport.hpp"
#include "transports/fibers/fibers.hpp"

namespace torii::fibers {

/// How the network of one job behaves.
struct WireModel {
  int engines = 1;
  Time late_least = 500;                 ///< a message takes this long at the least
  Time late_most = 20 * kMicrosecond;    ///< and mostly this long at the most
  double very_late = 0;                  ///< share of the messages that take up to `very_late_most`
  Time very_late_most = kMillisecond;    ///< after which the later ones of the same engine follow, if it keeps order
  bool keeps_order = true;               ///< messages of one engine to one peer arrive in the order of their sending
  bool stores_by_itself = false;         ///< payloads and signals are stored while the receiver does nothing
  bool wakes = false;                    ///< a sleeper wakes when something arrives
  std::vector<double> slower = {};       ///< by engine: times take so many times as long; none: 1
  Time death_seen_after = kMillisecond;  ///< connections of a dead process break up to so much later
};

/// A thing that goes wrong with an engine between two ranks.
struct Cut {
  int engine = 0;
  int rank = 0;
  int peer = -1;  ///< -1: the engine of `rank` to all peers
  Time at = 0;
  bool is_silent = false;  ///< nobody is told; otherwise both ends find the connection broken
};

/// The messages of one engine to the engine of the same number of a peer.
struct Message {
  enum class Kind : std::uint8_t { put, word, greeting, farewell, question, answer, broken };
  Kind kind = Kind::put;
  int from = 0;
  int to = 0;
  int engine = 0;
  std::uint64_t target_offset = 0;
  std::uint64_t signal_offset = 0;
  std::uint64_t signal = 0;
  const std::byte* source = nullptr;  ///< read when the message leaves, until then the sender keeps it
  std::vector<std::byte> payload = {};
  std::size_t bytes = 0;
  Time sent_at = 0;
  PutHold hold = {};
  bool has_left = false;
  bool is_dropped = false;  ///< its engine has given it up: it never arrives
  void drop() noexcept {
    is_dropped = true;
    hold.let_go();
  }
};

/// Something has arrived now.
struct Transfer {
  int from = 0;
  int to = 0;
  Time sent = 0;
};

/// An engine's end of the wires.
class WireEnd {
 public:
  virtual ~WireEnd() = default;
  /// A message has come. The engine takes it in its next progress(), or at once if messages store themselves.
  virtual void receive(std::unique_ptr<Message> message) = 0;
  /// A message has left: its source is read no more.
  virtual void left(const Message& message) noexcept = 0;
};

/// The wires of one job. Everything happens on the thread of the fibers.
class Wires {
 public:
  Wires(Fibers& fibers, int ranks, const WireModel& manner);

  Fibers& fibers() noexcept { return fibers_; }
  const WireModel& manner() const noexcept { return manner_; }
  int ranks() const noexcept { return ranks_; }

  void plug_in(int rank, int engine, WireEnd& end);
  /// Everything under way to this end is dropped, and the peers find that the connection has broken.
  void unplug(int rank, int engine);
  void send(std::unique_ptr<Message> message);
  /// Plans what goes wrong. Before run().
  void add(const Cut& cut);
  /// The process of the rank has ended: its connections break.
  void end_rank(int rank);
  std::uint64_t messages() const noexcept { return messages_; }

  /// Told of every message that arrives, and of every put within a node: for pictures and checks.
  std::function<void(const Transfer& transfer)> on_transfer;

 private:
  struct Line {
    Time last_arrival = 0;
    bool is_cut = false;
  };
  Line& line(int from, int to, int engine) noexcept {
    return lines_[static_cast<std::size_t>((from * ranks_ + to) * manner_.engines + engine)];
  }
  WireEnd*& end(int rank, int engine) noexcept {
    return ends_[static_cast<std::size_t>(rank * manner_.engines + engine)];
  }
  void leave(Message& message) noexcept;
  void arrive(std::unique_ptr<Message> message);
  void cut(int engine, int rank, int peer, bool is_silent);
  void tell_broken(int rank, int peer, int engine);

  Fibers& fibers_;
  int ranks_;
  WireModel manner_;
  std::vector<Line> lines_;
  std::vector<WireEnd*> ends_;
  std::vector<bool> gone_;  ///< by rank
  std::uint64_t messages_ = 0;
};

}  // namespace torii::fibers
