// SPDX-License-Identifier: Apache-2.0
// Takes a board for a context, and gives it to the next one.
#include "api/context/founding_boards.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace torii {

std::unique_ptr<FoundingOpener> RestingBoards::take(int places) noexcept {
  const std::lock_guard lock(mutex_);
  const auto serves = [=](const auto& opener) { return opener->places() == places && opener->is_at_rest(); };
  const auto found = std::ranges::find_if(openers_, serves);
  if (found == openers_.end()) return nullptr;
  std::unique_ptr<FoundingOpener> opener = std::move(*found);
  openers_.erase(found);
  return opener;
}

void RestingBoards::keep(std::unique_ptr<FoundingOpener> opener) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    openers_.push_back(std::move(opener));
  } catch (const std::exception&) {
    // The next context takes fresh memory.
  }
}

FoundingBoards::FoundingBoards(shared_memory::Arena& arena, RestingBoards& resting, const shared_memory::Nodes& nodes,
                               int rank)
    : arena_(arena), resting_(resting) {
  int before = 0;
  for (int one = 0; one < nodes.ranks(); ++one) places_.push_back(nodes.is_own(one) ? before++ : -1);
  const int own = places_[static_cast<std::size_t>(rank)];
  opener_ = resting.take(before);
  if (opener_ == nullptr) {
    const int entries = FoundingBoard::entries_for(before);
    const std::size_t offset = arena.allocate(FoundingBoard::bytes(before, entries), shared_memory::Backing::on_touch);
    opener_ = std::make_unique<FoundingOpener>(FoundingBoard(arena.base() + offset, before, 0, entries), own);
  }
  opener_->begin_use(own);
}

FoundingBoards::~FoundingBoards() { resting_.keep(std::move(opener_)); }

shared_memory::NodePeers::Words FoundingBoards::place() const noexcept {
  return {static_cast<std::uint64_t>(opener_->memory() - arena_.base()), opener_->use()};
}

FoundingBoard FoundingBoards::of(const shared_memory::NodePeers& peers, int rank) const noexcept {
  const auto& [offset, use] = peers.told(rank);
  return {peers.base(rank) + offset, opener_->places(), use, FoundingBoard::entries_for(opener_->places())};
}

}  // namespace torii
