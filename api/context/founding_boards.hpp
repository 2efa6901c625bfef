// SPDX-License-Identifier: Apache-2.0
// The founding boards of the ranks of this node.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "api/context/founding_board.hpp"
#include "transports/shared_memory/arena.hpp"
#include "transports/shared_memory/node_peers.hpp"
#include "transports/shared_memory/nodes.hpp"

namespace torii {

/// Boards of contexts that have gone, for later ones with the same arena. Their memory is never given back: a rank that
/// is late may look there when this rank's context has gone, as at its doorbell. Thread-safe.
class RestingBoards {
 public:
  /// One that has come to rest; nullptr if there is none for so many ranks. A rank that was stopped inside an entry, or
  /// has not come to a founding that has failed, keeps a board from others for as long.
  std::unique_ptr<FoundingOpener> take(int places) noexcept;
  void keep(std::unique_ptr<FoundingOpener> opener) noexcept;

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<FoundingOpener>> openers_;
};

class FoundingBoards {
 public:
  /// Takes a board that rests, or memory of the arena for one. Throws Error{no_resource}. `resting` must outlive this.
  FoundingBoards(shared_memory::Arena& arena, RestingBoards& resting, const shared_memory::Nodes& nodes, int rank);
  ~FoundingBoards();
  FoundingBoards(const FoundingBoards&) = delete;
  FoundingBoards& operator=(const FoundingBoards&) = delete;

  /// Where this rank's board is: what peers.told(rank) must be.
  shared_memory::NodePeers::Words place() const noexcept;
  /// The board of a rank of this node.
  FoundingBoard of(const shared_memory::NodePeers& peers, int rank) const noexcept;
  FoundingOpener& opener() noexcept { return *opener_; }
  /// By rank: its place among the ranks of this node, -1 for ranks of others.
  std::span<const int> places() const noexcept { return places_; }

 private:
  const shared_memory::Arena& arena_;
  RestingBoards& resting_;
  std::vector<int> places_;
  std::unique_ptr<FoundingOpener> opener_;
};

}  // namespace torii
