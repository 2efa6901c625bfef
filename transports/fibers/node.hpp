// SPDX-License-Identifier: Apache-2.0
// Shared memory between fibers of one node: each use of it is a point at which the seed decides what happens next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "runtime/fabric/transport.hpp"
#include "transports/fibers/fibers.hpp"
#include "transports/fibers/wires.hpp"
#include "transports/shared_memory/shared_memory.hpp"

namespace torii::fibers {

/// Rank r is fiber r. Its process lives as long as its fiber does; peers see its end a little later.
class Node final : public Transport {
 public:
  Node(Wires& wires, std::unique_ptr<shared_memory::SharedMemory> inner, bool oversubscribed)
      : wires_(wires), fibers_(wires.fibers()), inner_(std::move(inner)), oversubscribed_(oversubscribed) {}

  const Capabilities& capabilities() const noexcept override { return inner_->capabilities(); }
  int rank() const noexcept override { return inner_->rank(); }
  int ranks() const noexcept override { return inner_->ranks(); }
  int node(int rank) const noexcept override { return inner_->node(rank); }
  std::byte* mapped(int peer, std::uint64_t offset) noexcept override { return inner_->mapped(peer, offset); }
  std::uint64_t arena_bytes() const noexcept override { return inner_->arena_bytes(); }
  const std::atomic<std::uint32_t>* sleeping(int peer) noexcept override {
    fibers_.pass();
    return inner_->sleeping(peer);
  }
  void ring(int peer) noexcept override { inner_->ring(peer); }
  Status put(const Put& put) noexcept override {
    fibers_.pass();
    if (wires_.on_transfer) wires_.on_transfer({rank(), put.peer, fibers_.now()});
    return inner_->put(put);
  }
  bool readable(int peer) const noexcept override { return inner_->readable(peer); }
  Status read(int peer, std::uintptr_t address, std::byte* to, std::size_t bytes) noexcept override {
    fibers_.pass();
    return fibers_.is_gone(peer) ? Status::peer_lost : inner_->read(peer, address, to, bytes);
  }
  Status put_word(int peer, std::uint64_t offset, std::uint64_t value) noexcept override {
    fibers_.pass();
    return inner_->put_word(peer, offset, value);
  }
  Status progress() noexcept override {
    fibers_.pass();
    return inner_->progress();
  }
  bool drained() noexcept override { return inner_->drained(); }
  void sleep(SleepMark& mark, int most_us, bool (*still_idle)(void* data), void* data) noexcept override {
    fibers_.pass();
    inner_->sleep(mark, most_us, still_idle, data);
  }
  void note_wait(std::int64_t waited_ns, std::int64_t now_ns) noexcept override {
    inner_->note_wait(waited_ns, now_ns);
  }
  bool alive(int peer) noexcept override {
    fibers_.pass();
    return !fibers_.is_gone(peer, kSeenAfter);
  }
  bool oversubscribed() const noexcept override { return oversubscribed_; }

  /// Peers see a rank's end so long after it.
  static constexpr Time kSeenAfter = 100 * kMicrosecond;

 private:
  Wires& wires_;
  Fibers& fibers_;
  std::unique_ptr<shared_memory::SharedMemory> inner_;
  bool oversubscribed_;
};

}  // namespace torii::fibers
