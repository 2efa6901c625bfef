// SPDX-License-Identifier: Apache-2.0
// The transport of a job on several nodes: shared memory inside a node, a fabric between nodes.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "runtime/bootstrap/life_watch.hpp"
#include "runtime/fabric/transport.hpp"
#include "transports/shared_memory/nodes.hpp"

namespace torii::mixed {

/// As thread-safe as its two transports.
class Mixed final : public Transport {
 public:
  /// `inside` maps the arenas of the own node's ranks, `between` reaches all others; both use the job's rank numbers.
  /// `nodes` is equal on all ranks and outlives this object. `between` may use `lives`, and `pinning` uses `between`.
  Mixed(const shared_memory::Nodes& nodes, std::unique_ptr<Transport> inside, std::unique_ptr<Transport> between,
        std::unique_ptr<LifeWatch> lives = nullptr, std::shared_ptr<const void> pinning = nullptr);

  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  int rank() const noexcept override { return inside_->rank(); }
  int ranks() const noexcept override { return inside_->ranks(); }
  int node(int rank) const noexcept override { return nodes_.node(rank); }
  std::byte* mapped(int peer, std::uint64_t offset) noexcept override { return inside_->mapped(peer, offset); }
  std::uint64_t arena_bytes() const noexcept override { return inside_->arena_bytes(); }
  const std::atomic<std::uint32_t>* sleeping(int peer) noexcept override {
    return nodes_.is_own(peer) ? inside_->sleeping(peer) : nullptr;
  }
  void ring(int peer) noexcept override { inside_->ring(peer); }
  bool readable(int peer) const noexcept override { return nodes_.is_own(peer) && inside_->readable(peer); }
  Status read(int peer, std::uintptr_t address, std::byte* to, std::size_t bytes) noexcept override {
    return inside_->read(peer, address, to, bytes);
  }
  /// A put to a lost peer does nothing and returns ok: the peer may have ended after its last call, when nobody waits
  /// for it. A rank that waits for it asks alive(), and PutOwner::status() says that the put has failed.
  Status put(const Put& put) noexcept override { return forgive(to(put.peer).put(put)); }
  Status put_word(int peer, std::uint64_t offset, std::uint64_t value) noexcept override {
    return forgive(to(peer).put_word(peer, offset, value));
  }
  /// Shared memory has nothing to move and nothing in flight.
  Status progress() noexcept override { return between_->progress(); }
  bool drained() noexcept override { return between_->drained(); }
  void sleep(SleepMark& mark, int most_us, bool (*still_idle)(void* data), void* data) noexcept override;
  void note_wait(std::int64_t waited_ns, std::int64_t now_ns) noexcept override {
    inside_->note_wait(waited_ns, now_ns);
  }
  bool alive(int peer) noexcept override { return to(peer).alive(peer); }
  bool may_live(int peer) noexcept override { return to(peer).may_live(peer); }
  /// A store into memory is never lost, so only engines between nodes are given up.
  void close_engines(std::uint32_t engines) noexcept override { between_->close_engines(engines); }
  std::uint32_t lost_engines() const noexcept override { return between_->lost_engines(); }
  std::uint32_t closed_engines() const noexcept override { return between_->closed_engines(); }
  void forget(std::uint64_t offset, std::size_t bytes) noexcept override { between_->forget(offset, bytes); }
  bool is_arriving(std::uint64_t offset, std::size_t bytes) noexcept override {
    return between_->is_arriving(offset, bytes);
  }
  std::uint64_t strangers() const noexcept override { return between_->strangers(); }
  std::string failure_text() const override { return between_->failure_text(); }
  bool oversubscribed() const noexcept override { return inside_->oversubscribed(); }

 private:
  static Status forgive(Status status) noexcept { return status == Status::peer_lost ? Status::ok : status; }
  Transport& to(int peer) noexcept { return nodes_.is_own(peer) ? *inside_ : *between_; }

  const shared_memory::Nodes& nodes_;
  bool alone_;  ///< no other rank shares the node
  std::unique_ptr<Transport> inside_;
  std::unique_ptr<LifeWatch> lives_;  ///< ends after the engines, so that peers see those end first
  std::unique_ptr<Transport> between_;
  std::shared_ptr<const void> pinning_;  ///< of the arena by `between_`
  std::string name_;
  Capabilities capabilities_;
};

}  // namespace torii::mixed
