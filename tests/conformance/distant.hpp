// SPDX-License-Identifier: Apache-2.0
// A transport around shared memory that plays several nodes: peers of other nodes are not mapped, and what is put to
// them arrives late, in any order, when progress() is called.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "runtime/fabric/transport.hpp"

namespace torii::tests {

/// Passes on to `inner`, which must outlive it. For one thread. What providers may do with memory it does: a source is
/// read as late as possible, unless its payload is in the signal's line, and the line before it is overwritten where
/// the put says so.
class Distant : public Transport {
 public:
  Distant(Transport& inner, std::vector<int> nodes, std::uint64_t seed, bool gathers = false)
      : inner_(inner),
        nodes_(std::move(nodes)),
        random_(seed),
        capabilities_(inner.capabilities()),
        arena_bytes_(inner.arena_bytes()) {
    capabilities_.gathers = gathers;
  }

  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  int rank() const noexcept override { return inner_.rank(); }
  int ranks() const noexcept override { return inner_.ranks(); }
  int node(int rank) const noexcept override { return nodes_.empty() ? 0 : nodes_[static_cast<std::size_t>(rank)]; }
  std::byte* mapped(int peer, std::uint64_t offset) noexcept override {
    return is_near(peer) ? inner_.mapped(peer, offset) : nullptr;
  }
  std::uint64_t arena_bytes() const noexcept override { return arena_bytes_; }
  const std::atomic<std::uint32_t>* sleeping(int peer) noexcept override {
    return is_near(peer) ? inner_.sleeping(peer) : nullptr;
  }
  void ring(int peer) noexcept override { inner_.ring(peer); }
  Status put(const Put& put) noexcept override;
  Status put_word(int peer, std::uint64_t offset, std::uint64_t value) noexcept override;
  bool readable(int peer) const noexcept override { return is_near(peer) && inner_.readable(peer); }
  Status read(int peer, std::uintptr_t address, std::byte* to, std::size_t bytes) noexcept override {
    ++reads_;
    return inner_.read(peer, address, to, bytes);
  }
  Status progress() noexcept override;
  bool drained() noexcept override;
  void sleep(SleepMark& mark, int most_us, bool (*still_idle)(void* data), void* data) noexcept override {
    inner_.sleep(mark, most_us, still_idle, data);
  }
  bool alive(int peer) noexcept override { return inner_.alive(peer); }
  bool oversubscribed() const noexcept override { return inner_.oversubscribed(); }

  /// Nothing that is put through this engine arrives from now on.
  void lose_engine(int engine) noexcept { lost_engine_ = engine; }
  /// As if no rank had told an offset beyond.
  void end_arena_at(std::uint64_t bytes) noexcept { arena_bytes_ = bytes; }
  /// Planted: signals are stored in no order with the payload. Wrong on purpose; a race checker must report it.
  void relax_signals() noexcept { relaxes_signals_ = true; }
  /// Everything under way arrives.
  void flush() noexcept;
  std::uint64_t distant_puts() const noexcept { return distant_puts_; }
  /// The most peers to which payload was under way at once.
  int targets_most() const noexcept { return targets_most_; }
  std::uint64_t reads() const noexcept { return reads_; }
  /// Payloads to other nodes that are taken from this memory are counted.
  void watch(const std::byte* first, std::size_t bytes) { watched_.emplace_back(first, first + bytes); }
  std::uint64_t watched_puts() const noexcept { return watched_puts_; }

 private:
  struct Pending {
    Put put;
    bool is_word;
    PutHold hold;
    std::array<std::byte, kInlineBytes> in_line = {};  ///< the payload, if it is in the signal's line
  };
  bool is_near(int peer) const noexcept { return node(peer) == node(rank()); }
  void deliver(std::size_t index) noexcept;
  void store_relaxed(const Put& put) noexcept;
  void count_targets();

  Transport& inner_;
  std::vector<int> nodes_;
  std::mt19937_64 random_;
  Capabilities capabilities_;
  std::uint64_t arena_bytes_;
  std::vector<Pending> pending_;
  std::uint64_t distant_puts_ = 0;
  int targets_most_ = 0;
  int lost_engine_ = -1;
  bool relaxes_signals_ = false;
  std::vector<std::pair<const std::byte*, const std::byte*>> watched_;
  std::uint64_t watched_puts_ = 0;
  std::uint64_t reads_ = 0;  ///< out of peers' private memory
};

}  // namespace torii::tests
