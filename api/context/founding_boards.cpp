// SPDX-License-Identifier: Apache-2.0
// Takes the memory of a board, and gathers where all are.
#include "api/context/founding_boards.hpp"

namespace torii {

FoundingBoards::FoundingBoards(Bootstrap& bootstrap, shared_memory::Arena& arena, const shared_memory::Nodes& nodes,
                               Transport& transport)
    : transport_(transport), here_(nodes.own_ranks()) {
  int before = 0;
  for (int rank = 0; rank < bootstrap.ranks(); ++rank) places_.push_back(nodes.is_own(rank) ? before++ : -1);
  const std::uint64_t own = arena.allocate(FoundingBoard::bytes(here_), shared_memory::Backing::on_touch);
  offsets_ = gather_values(bootstrap, own);
  opener_ = std::make_unique<FoundingOpener>(of(bootstrap.rank()), places_[static_cast<std::size_t>(bootstrap.rank())]);
}

FoundingBoard FoundingBoards::of(int rank) const noexcept {
  return {transport_.mapped(rank, offsets_[static_cast<std::size_t>(rank)]), here_};
}

}  // namespace torii
