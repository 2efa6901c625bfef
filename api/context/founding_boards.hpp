// SPDX-License-Identifier: Apache-2.0
// The founding boards of the ranks of this node.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "api/context/founding_board.hpp"
#include "runtime/bootstrap/bootstrap.hpp"
#include "runtime/fabric/transport.hpp"
#include "transports/shared_memory/arena.hpp"
#include "transports/shared_memory/nodes.hpp"

namespace torii {

class FoundingBoards {
 public:
  /// Collective. Takes memory for this rank's board, and learns where the others are. The memory is never given back:
  /// a rank that is late may look there when this rank's context has gone, as at its doorbell.
  FoundingBoards(Bootstrap& bootstrap, shared_memory::Arena& arena, const shared_memory::Nodes& nodes,
                 Transport& transport);

  /// The board of a rank of this node.
  FoundingBoard of(int rank) const noexcept;
  FoundingOpener& opener() noexcept { return *opener_; }
  /// By rank: its place among the ranks of this node, -1 for ranks of others.
  std::span<const int> places() const noexcept { return places_; }

 private:
  Transport& transport_;
  int here_;  ///< ranks of this node
  std::vector<int> places_;
  std::vector<std::uint64_t> offsets_;
  std::unique_ptr<FoundingOpener> opener_;
};

}  // namespace torii
