// SPDX-License-Identifier: Apache-2.0
// The ranks of one node: where each arena is mapped here, who they are, and whether they live.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/bootstrap/bootstrap.hpp"
#include "transports/shared_memory/arena.hpp"
#include "transports/shared_memory/handshake.hpp"
#include "transports/shared_memory/nodes.hpp"

namespace torii::shared_memory {

/// This rank's arena, of a size that every rank of the job can map for all ranks of its node. nullptr for a rank that
/// has an arena from before, whose size is then that of all. Collective over the job. Throws Error on all ranks, naming
/// one: no_resource if it cannot map them, mismatch if ranks have arenas of different sizes from before.
std::unique_ptr<Arena> make_arena(Bootstrap& bootstrap, const Nodes& nodes, std::size_t wanted_bytes,
                                  const Arena* earlier = nullptr);

struct Card;  // what every rank publishes about itself

/// Made once per context, collectively over the job; then immutable, so any thread may ask. Ranks are those of the job.
/// Nothing is known here about ranks of other nodes.
class NodePeers {
 public:
  /// Words that a rank tells the others about what it has in its arena.
  using Words = std::array<std::uint64_t, 2>;

  /// Every rank maps the arenas of its node's ranks, and learns what they tell. Threads of one process use one mapping,
  /// so that a race checker sees their races. `arena` must outlive this object, and must not be destroyed while threads
  /// of this process use it as peers. Throws Error: timeout or peer_lost naming the missing rank, no_resource.
  NodePeers(Bootstrap& bootstrap, const Nodes& nodes, const Arena& arena, double timeout_s, const Words& told = {});

  int rank() const noexcept { return rank_; }
  int ranks() const noexcept { return static_cast<int>(peers_.size()); }
  /// The first byte of that rank's arena in this process; nullptr for ranks of other nodes.
  std::byte* base(int rank) const noexcept { return peer(rank).base; }
  /// The size of every rank's arena.
  std::size_t arena_bytes() const noexcept { return arena_bytes_; }
  /// False if the rank's process has ended, has become another program, or has no arena any more; one system call.
  /// Threads of this process count as alive, and so do ranks of other nodes.
  bool alive(int rank) const noexcept;
  /// For is_held() when this object has gone. None for ranks of this process and of other nodes, and if the process has
  /// no descriptor left.
  Descriptor life(int rank) const noexcept;
  /// The process number as that rank sees it; 0 for ranks of other nodes.
  int pid(int rank) const noexcept { return peer(rank).pid; }
  /// For a rank of this node.
  const Words& told(int rank) const noexcept { return peer(rank).told; }
  /// As in Nodes.
  bool oversubscribed() const noexcept { return oversubscribed_; }

 private:
  struct Peer {
    std::byte* base = nullptr;
    Mapping mapping;       // empty for ranks of the own process
    Descriptor life;       // none for ranks of the own process
    bool foreign = false;  // of another process
    int pid = 0;
    std::string host;
    Words told{};
  };

  const Peer& peer(int rank) const noexcept { return peers_[static_cast<std::size_t>(rank)]; }
  void meet(const Listener& listener, const Nodes& nodes, const std::vector<Card>& cards, const Arena& arena,
            double timeout_s);

  int rank_;
  std::size_t arena_bytes_;
  bool oversubscribed_ = false;
  std::vector<Peer> peers_;
};

}  // namespace torii::shared_memory
