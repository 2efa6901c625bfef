// SPDX-License-Identifier: Apache-2.0
// Which ranks of other nodes still run, whatever the fabric between the nodes notices.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/base/descriptor.hpp"
#include "runtime/base/own_descriptor.hpp"
#include "runtime/bootstrap/bootstrap.hpp"
#include "runtime/devices/address.hpp"

namespace torii {

/// Network libraries leave their sockets open in child processes. So the streams of a rank that has children do not end
/// with the rank, and its engines' listeners answer as before. Each rank therefore has a TCP listener that no child
/// keeps and that accepts nobody. Each peer on another node keeps a connection in its queue. The kernel resets the
/// connections when the process ends or execs, also if it was stopped. A peer whose process number is visible has a
/// pidfd too. Thread-safe.
class LifeWatch {
 public:
  /// The knowledge of the ranks.
  struct Ranks {
    std::vector<int> nodes;        ///< of each rank; empty: each has a node of its own
    std::vector<pid_t> processes;  ///< of each rank as this process sees them, 0 if it does not; may be empty
    int fabric_files = 0;          ///< descriptors that the fabric may need for each rank of another node
  };

  /// Collective. `address` is the one by which peers reach this host; empty: unknown. Waits for no connection; a peer
  /// that cannot be reached is not watched, nor are those for which too few descriptors are free, until
  /// watch_the_rest(). Throws Error{no_resource}.
  LifeWatch(Bootstrap& bootstrap, const Ranks& ranks, const std::string& address);

  /// When the fabric has its descriptors: takes half of what is left for peers that are not watched yet, and warns if
  /// that is too little.
  void watch_the_rest();

  /// Whether has_ended() will see the peer's end, as far as this rank can tell.
  bool watches(int peer) noexcept;

  /// True from a moment after the peer's end on: its last messages may still come in that time. One system call in a
  /// millisecond, for all threads and peers together.
  bool has_ended(int peer, std::int64_t now_ns) noexcept;

 private:
  enum class State { none, connecting, connected };

  struct Watch {
    pid_t pid = 0;       ///< of which a pidfd is still to be opened, or 0
    Descriptor process;  ///< the pidfd
    Address listener;
    Descriptor connection;
    State state = State::none;
    bool lacks_files = false;  ///< not watched yet, or not fully
    /// A refusal means an end only after an answer: before, a firewall or another host may have refused.
    bool has_answered = false;
    std::int64_t connects_ns = 0;  ///< when to connect again
    std::int64_t ended_ns = 0;     ///< when the end was seen; 0: not yet
  };

  int first_free_number() const noexcept;
  int watch(std::size_t reserved) noexcept;
  bool start(Watch& one, int end) noexcept;
  void look(std::int64_t now_ns) noexcept;
  void look_at_connection(Watch& one, std::int64_t now_ns) noexcept;
  int connect_anew(Watch& one, std::int64_t now_ns) noexcept;
  bool reports(const Watch& one, const Descriptor& descriptor, std::uint32_t events, int how) noexcept;
  void drop(Descriptor& descriptor) noexcept;
  static int ended_with(Watch& one) noexcept;

  int rank_;
  OwnDescriptor listener_;
  std::mutex mutex_;
  Descriptor events_;           ///< an epoll descriptor for all pidfds and connections
  std::int64_t looks_ns_ = 0;   ///< when to look again
  std::vector<Watch> watches_;  ///< by rank
  std::vector<int> peers_;      ///< in the order in which they are watched
};

}  // namespace torii
