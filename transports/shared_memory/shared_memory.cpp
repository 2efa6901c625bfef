// SPDX-License-Identifier: Apache-2.0
// Puts by plain stores, and the doorbell that wakes a sleeping peer.
#include "transports/shared_memory/shared_memory.hpp"

#include <algorithm>
#include <utility>

#include "reduce_kernels/kernels.hpp"
#include "runtime/base/platform.hpp"
#include "runtime/base/tuned_constants.hpp"
#include "runtime/fabric/words.hpp"

namespace torii::shared_memory {
namespace {

constexpr auto kBlindUsPerRank = tuned<int>("waiting.sleep_blind_per_rank");

/// What a rank tells of its doorbell.
struct BellCard {
  std::uint64_t offset;
  std::uint64_t joins_fences;
};

}  // namespace

SharedMemory::SharedMemory(Bootstrap& bootstrap, Arena& arena, NodePeers& peers, int engines, Switch cross_memory,
                           bool hops)
    : arena_(arena),
      peers_(peers),
      rank_(bootstrap.rank()),
      oversubscribed_(peers.oversubscribed()),
      capabilities_{
          .name = "shared_memory", .mapped = true, .wakes_on_put = true, .notices_deaths = true, .engines = engines},
      doorbell_offset_(arena.allocate(sizeof(Doorbell))) {
  for (int peer = 0; peer < bootstrap.ranks(); ++peer) bases_.push_back(peers.base(peer));
  const auto node_ranks = bases_.size() - static_cast<std::size_t>(std::ranges::count(bases_, nullptr));
  const bool is_alone = node_ranks == 1;
  const BellCard mine = {doorbell_offset_, !is_alone && platform().join_fences() ? std::uint64_t{1} : 0};
  const std::vector<BellCard> cards = gather_values(bootstrap, mine);
  for (int peer = 0; peer < bootstrap.ranks(); ++peer) {
    const BellCard& card = cards[static_cast<std::size_t>(peer)];
    std::byte* const bell = mapped(peer, card.offset);
    doorbells_.push_back(reinterpret_cast<Doorbell*>(bell));
    has_fences_ = has_fences_ && (bell == nullptr || card.joins_fences != 0);
  }
  // Nobody rings a rank that is alone.
  if (!is_alone) blind_sleep_us_ = std::min(kBlindUsPerRank * static_cast<int>(node_ranks), kBlindUsMost);
  if (!is_alone) make_hints(hops);
  if (cross_memory == Switch::off) return;
  cross_memory_ = std::make_unique<CrossMemory>(bootstrap, peers);
  if (cross_memory_->allowed()) return;
  if (cross_memory == Switch::on) {
    throw Error(Status::unsupported, "TORII_CROSS_MEMORY is on, but " + cross_memory_->why_not() +
                                         "; torii-info doctor says what stands in the way");
  }
  cross_memory_.reset();
}

void SharedMemory::make_hints(bool hops) {
  std::vector<std::atomic<std::uint64_t>*> hints;
  std::size_t own = 0;
  for (int peer = 0; peer < ranks(); ++peer) {
    if (bases_[static_cast<std::size_t>(peer)] == nullptr) continue;
    if (peer == rank_) own = hints.size();
    hints.push_back(&doorbells_[static_cast<std::size_t>(peer)]->cpu);
  }
  cpu_hints_.emplace(std::move(hints), own, hops, counters());
}

// The doorbell stays where it is, for as long as the arena lives: a peer may ring it after this rank has gone.
SharedMemory::~SharedMemory() = default;

// A rank that is about to sleep sets `sleeping` and then looks at its signals once more. A putter stores the signal and
// then looks at `sleeping`. Without a full fence between the putter's two accesses both may miss each other. Every put
// would pay for that fence, so the sleeper makes it for all, once in a wait, or else sleeps briefly
// (docs/memory_order.md).
// Threads of a rank may sleep in calls on different teams. A putter cannot tell which of them waits for its signal, so
// it wakes all; those that find nothing sleep again.
void SharedMemory::ring(int peer) noexcept {
  Doorbell& bell = *doorbells_[static_cast<std::size_t>(peer)];
  if (!is_marked(bell.sleeping)) return;
  bell.rings.fetch_add(1, std::memory_order_release);
  platform().wake_all(bell.rings);
}

Status SharedMemory::put(const Put& put) noexcept {
  std::byte* base = bases_[static_cast<std::size_t>(put.peer)];
  if (put.source != nullptr) kernels::copy(base + put.target_offset, put.source, put.bytes, false);
  store_word(base + put.signal_offset, put.signal);
  if (put.peer != rank_) ring(put.peer);
  return Status::ok;
}

Status SharedMemory::put_word(int peer, std::uint64_t offset, std::uint64_t value) noexcept {
  store_word(bases_[static_cast<std::size_t>(peer)] + offset, value);
  if (peer != rank_) ring(peer);
  return Status::ok;
}

void SharedMemory::sleep(SleepMark& mark, int most_us, bool (*still_idle)(void* data), void* data) noexcept {
  Doorbell& bell = *doorbells_[static_cast<std::size_t>(rank_)];
  const std::uint32_t rings = bell.rings.load(std::memory_order_acquire);
  mark.set(bell.sleeping);
  if (most_us > blind_sleep_us_ && !mark.is_fenced) {
    mark.is_fenced = has_fences_ && platform().fence_all();
    if (!mark.is_fenced) most_us = blind_sleep_us_;
  }
  if (still_idle(data)) platform().wait(bell.rings, rings, most_us * std::int64_t{1000});
}

}  // namespace torii::shared_memory
