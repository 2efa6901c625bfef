// SPDX-License-Identifier: Apache-2.0
// Ranks that were left out and may still store into this rank's memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/base/descriptor.hpp"
#include "runtime/fabric/transport.hpp"
#include "transports/shared_memory/arena.hpp"
#include "transports/shared_memory/node_peers.hpp"

namespace torii {

/// A rank of this node that a team of survivors has left out may have been stopped in the middle of a store into a
/// vector of this rank. It may go on at any time. So blocks of the arena that it could know are not used again,
/// although their owner gives them back. They stay unused until that rank is dead, or until it and this rank have left
/// all teams that they share. Contexts may share this object with the arena. Thread-safe.
class LateWriters {
 public:
  /// The arena must outlive this.
  explicit LateWriters(const shared_memory::Arena& arena) : arena_(arena) {}
  LateWriters(const LateWriters&) = delete;
  LateWriters& operator=(const LateWriters&) = delete;

  /// The rank is left out now. It may write for as long as it lives and somebody holds what this returns: the teams
  /// that it shares with this rank. nullptr without memory: then it may write for as long as it lives.
  std::shared_ptr<const void> add(Transport& transport, int rank) noexcept;
  /// A team that shares its memory with the rank could not hold what add() returned.
  void keep(int rank) noexcept;
  /// The transport goes, and with it all that knows when its ranks leave teams: they write until they are dead.
  void forget(const Transport& transport, const shared_memory::NodePeers& peers) noexcept;

  /// Whether any rank may write. Looks at each of them.
  bool may_write() noexcept;
  /// Whether any rank may write to the allocation at that offset of the arena, as the last look has found.
  bool may_reach(std::size_t offset) noexcept;

 private:
  struct Writer {
    Transport* transport;  ///< nullptr: gone
    int rank;              ///< of the transport
    Descriptor life;       ///< the rank's, when the transport has gone; none: nobody can tell when it is dead
    std::shared_ptr<const void> kept;  ///< holds `teams` for good
    std::weak_ptr<const void> teams;
    std::vector<std::size_t> blocks;  ///< those that were allocated when it was left out, ascending
  };
  static bool is_over(const Writer& writer) noexcept;

  const shared_memory::Arena& arena_;
  std::mutex mutex_;
  std::vector<Writer> writers_;
  std::atomic<bool> is_used_ = false;  ///< since a rank was left out first
  bool lacks_memory_ = false;          ///< a writer is missing in the list, so all blocks are out of use
};

}  // namespace torii
