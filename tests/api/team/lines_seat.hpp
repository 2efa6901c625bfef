// SPDX-License-Identifier: Apache-2.0
// Ranks as threads with the lines of a team; between nodes puts arrive late and in any order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "api/team/team_lines.hpp"
#include "tests/conformance/distant.hpp"
#include "tests/support/thread_ranks.hpp"
#include "transports/shared_memory/shared_memory.hpp"

namespace torii::tests {

inline constexpr std::int64_t kTimeoutNs = 10'000'000'000;

/// A rank with its lines.
class Seat {
 public:
  Seat(Exchange& exchange, const std::vector<int>& nodes, std::uint64_t seed)
      : exchange_(exchange),
        places_(exchange),
        arena_(shared_memory::make_arena(exchange, places_, shared_memory::kArenaBytesMin)),
        peers_(exchange, places_, *arena_, 20),
        shared_memory_(exchange, *arena_, peers_, 3, Switch::off),
        distant_(shared_memory_, nodes, seed + static_cast<std::uint64_t>(exchange.rank())) {
    const std::size_t offset = arena_->allocate(team_lines_bytes(exchange.ranks()));
    std::vector<TeamLines::Member> members;
    for (const std::size_t each : gather_values(exchange, offset)) {
      members.push_back({static_cast<int>(members.size()), each});
    }
    memory_ = arena_->base() + offset;
    lines_ = std::make_unique<TeamLines>(distant_, std::move(members), exchange.rank(), kTimeoutNs);
  }
  /// All that is under way arrives, everywhere.
  void meet() {
    distant_.flush();
    gather_values(exchange_, 0);
  }
  int rank() const { return exchange_.rank(); }
  TeamLines& lines() { return *lines_; }
  tests::Distant& transport() { return distant_; }
  Inbox& inbox(int sender) { return reinterpret_cast<Inbox*>(memory_ + sizeof(LinesMemory))[sender]; }
  LinesMemory& memory() { return *reinterpret_cast<LinesMemory*>(memory_); }

 private:
  Exchange& exchange_;
  shared_memory::Nodes places_;
  std::unique_ptr<shared_memory::Arena> arena_;
  shared_memory::NodePeers peers_;
  shared_memory::SharedMemory shared_memory_;
  tests::Distant distant_;
  std::byte* memory_ = nullptr;
  std::unique_ptr<TeamLines> lines_;
};

inline void play(const std::vector<int>& nodes, std::uint64_t seed, const std::function<void(Seat&)>& body) {
  run_ranks_as_threads(static_cast<int>(nodes.size()), [&](Exchange& exchange) {
    Seat seat(exchange, nodes, seed);
    seat.meet();
    body(seat);
    seat.meet();
    seat.meet();
  });
}

}  // namespace torii::tests
