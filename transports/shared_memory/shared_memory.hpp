// SPDX-License-Identifier: Apache-2.0
// The transport of ranks that share a node: peers' arenas are mapped, a put is a copy and a store.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/base/settings.hpp"
#include "runtime/base/tuned_constants.hpp"
#include "runtime/bootstrap/bootstrap.hpp"
#include "runtime/fabric/transport.hpp"
#include "transports/shared_memory/arena.hpp"
#include "transports/shared_memory/cpu_hints.hpp"
#include "transports/shared_memory/cross_memory.hpp"
#include "transports/shared_memory/node_peers.hpp"

namespace torii::shared_memory {

/// The line of a rank that its peers look at after each put. It is in the arena, zero at first.
struct Doorbell {
  std::atomic<std::uint32_t> rings;     ///< the futex word
  std::atomic<std::uint32_t> sleeping;  ///< threads of its rank that sleep or are about to
  std::atomic<std::uint64_t> cpu;       ///< CpuHint of a thread of its rank that waits
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && sizeof(Doorbell) == 16);

class SharedMemory final : public Transport {
 public:
  /// Collective over `bootstrap`; `arena` and `peers` must outlive it. Ranks of other nodes are not mapped, and nothing
  /// may be put to them through this object. Tries whether private memory of the node's ranks may be read; throws
  /// Error{unsupported} on all ranks if `cross_memory` is on and that is not possible. `hops`: waiting threads of this
  /// rank may move to another CPU (CpuHints).
  SharedMemory(Bootstrap& bootstrap, Arena& arena, NodePeers& peers, int engines, Switch cross_memory = Switch::off,
               bool hops = false);
  ~SharedMemory() override;

  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  int rank() const noexcept override { return rank_; }
  int ranks() const noexcept override { return static_cast<int>(bases_.size()); }
  int node(int) const noexcept override { return 0; }
  std::byte* mapped(int peer, std::uint64_t offset) noexcept override {
    std::byte* const base = bases_[static_cast<std::size_t>(peer)];
    return base == nullptr ? nullptr : base + offset;
  }
  std::uint64_t arena_bytes() const noexcept override { return arena_.bytes(); }
  const std::atomic<std::uint32_t>* sleeping(int peer) noexcept override {
    return &doorbells_[static_cast<std::size_t>(peer)]->sleeping;
  }
  void ring(int peer) noexcept override;
  Status put(const Put& put) noexcept override;
  bool readable(int) const noexcept override { return cross_memory_ != nullptr; }
  Status read(int peer, std::uintptr_t address, std::byte* to, std::size_t bytes) noexcept override {
    if (cross_memory_ == nullptr) return Status::unsupported;
    const Status status = cross_memory_->read(peer, address, to, bytes);
    // The number of a process that has ended may now be that of one which this rank must not read.
    return status == Status::unsupported && !peers_.alive(peer) ? Status::peer_lost : status;
  }
  Status put_word(int peer, std::uint64_t offset, std::uint64_t value) noexcept override;
  Status progress() noexcept override { return Status::ok; }  // every put is complete when put() returns
  bool drained() noexcept override { return true; }
  void sleep(SleepMark& mark, int most_us, bool (*still_idle)(void* data), void* data) noexcept override;
  void note_wait(std::int64_t waited_ns, std::int64_t now_ns) noexcept override {
    if (cpu_hints_) cpu_hints_->note_wait(waited_ns, now_ns);
  }
  bool alive(int peer) noexcept override { return peers_.alive(peer); }
  bool oversubscribed() const noexcept override { return oversubscribed_; }

 private:
  static constexpr auto kBlindUsMost = tuned<int>("waiting.sleep_least");

  void make_hints(bool hops);

  Arena& arena_;
  NodePeers& peers_;
  int rank_;
  bool oversubscribed_;
  Capabilities capabilities_;
  std::size_t doorbell_offset_;
  bool has_fences_ = true;                     ///< all ranks of the node have joined Platform::fence_all()
  int blind_sleep_us_ = kBlindUsMost;          ///< the longest sleep in which a ring may be missed
  std::unique_ptr<CrossMemory> cross_memory_;  ///< nullptr: not wanted, or not possible
  std::vector<std::byte*> bases_;
  std::vector<Doorbell*> doorbells_;
  std::optional<CpuHints> cpu_hints_;  ///< none: no other rank is on this node
};

}  // namespace torii::shared_memory
