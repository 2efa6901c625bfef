// SPDX-License-Identifier: Apache-2.0
// Makes the ranks of the station, and the platform on which they wait.
#include "tests/exploration/station.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/base/platform.hpp"
#include "tests/support/thread_ranks.hpp"
#include "transports/shared_memory/node_peers.hpp"

namespace torii::exploration {
namespace {

constexpr int kEngines = 2;

/// Time stands still, and waiting is the explorer's.
class ExploredPlatform final : public Platform {
 public:
  std::int64_t now_ns() noexcept override { return explorer().is_running() ? 0 : Platform::now_ns(); }
  void yield() noexcept override {
    if (explorer().is_running()) {
      explorer().idle();
    } else {
      Platform::yield();
    }
  }
  void wait(const std::atomic<std::uint32_t>& word, std::uint32_t value, std::int64_t most_ns) noexcept override {
    if (!explorer().is_running()) return Platform::wait(word, value, most_ns);
    explorer().sleep_while(&word, sizeof(word), value);
  }
  void wake_all(const std::atomic<std::uint32_t>& word) noexcept override {
    if (!explorer().is_running()) return Platform::wake_all(word);
    explorer().wake_all(&word, sizeof(word));
  }
  bool join_fences() noexcept override { return true; }
  bool fence_all() noexcept override {
    if (!explorer().is_running() || !has_fences) return false;
    explorer().fence_all();
    return true;
  }

  bool has_fences = false;
} explored_platform;

}  // namespace

struct Station::Rank {
  explicit Rank(Bootstrap& bootstrap)
      : nodes(bootstrap),
        arena(shared_memory::make_arena(bootstrap, nodes, shared_memory::kArenaBytesMin)),
        peers(bootstrap, nodes, *arena, 20),
        transport(bootstrap, *arena, peers, kEngines),
        ground(arena->allocate(kGroundBytes)) {}

  shared_memory::Nodes nodes;
  std::unique_ptr<shared_memory::Arena> arena;
  shared_memory::NodePeers peers;
  shared_memory::SharedMemory transport;
  std::size_t ground;
};

Station::Station() {
  set_platform(&explored_platform);
  tests::run_ranks_as_threads(kRanksMax, [this](Bootstrap& bootstrap) {
    ranks_[static_cast<std::size_t>(bootstrap.rank())] = std::make_unique<Rank>(bootstrap);
  });
  offset_ = ranks_[0]->ground;
  for (const auto& rank : ranks_) {
    if (rank->ground != offset_) throw Error(Status::internal, "arenas of equal ranks differ");
  }
}

Station::~Station() { set_platform(nullptr); }

void Station::let_sleepers_fence(bool let) noexcept { explored_platform.has_fences = let; }

Station& Station::instance() {
  static Station station;
  return station;
}

std::byte* Station::ground(int rank) const { return ranks_[static_cast<std::size_t>(rank)]->arena->base() + offset_; }

shared_memory::SharedMemory& Station::transport(int rank) { return ranks_[static_cast<std::size_t>(rank)]->transport; }

void Station::set_up(Explorer& explorer, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    const auto& arena = *ranks_[static_cast<std::size_t>(rank)]->arena;
    std::memset(ground(rank), 0, kGroundBytes);
    explorer.memory().share(arena.base(), arena.bytes());
    explorer.memory().name(arena.base(), offset_, "rank " + std::to_string(rank) + "'s doorbell");
    explorer.memory().name(ground(rank), kGroundBytes, "rank " + std::to_string(rank) + "'s memory");
  }
}

}  // namespace torii::exploration
