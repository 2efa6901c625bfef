// SPDX-License-Identifier: Apache-2.0
// A worker of a device, and its connections to the peers' workers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transports/network/failures.hpp"
#include "transports/ucx/api.hpp"
#include "transports/ucx/device.hpp"
#include "transports/ucx/message.hpp"
#include "transports/ucx/shared.hpp"

namespace torii::ucx {

/// A peer, as a worker reaches it. UCX keeps its address.
struct Connection {
  const transports::EngineFailures* failures = nullptr;
  int peer = 0;
  ucp_ep_h endpoint = nullptr;
  std::uint64_t secret = 0;
  using Key = Owner<ucp_rkey_h, ucp_rkey_destroy>;
  Key table_key;
  std::uint64_t table_address = 0;
  /// What can be put to, as the table had it when it was read last.
  struct Place {
    Extent extent;
    std::uint64_t base = 0;  ///< makes an address of an offset in the arena
    Key key;
  };
  std::vector<Place> places;

  const Place* find(std::uint64_t offset, std::size_t bytes) const noexcept {
    for (const Place& one : places) {
      if (one.extent.holds(offset, bytes)) return &one;
    }
    return nullptr;
  }
};

/// Not thread-safe but for wait_descriptor(): the engine has the lock. UCX calls back inside progress(), give_up() and
/// close().
class Worker {
 public:
  /// Throws Error.
  Worker(std::shared_ptr<Device> device, int number, const Shared& shared);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Messages of that number go to `callback`, with `receiver`. Throws Error.
  void listen(unsigned id, ucp_am_recv_callback_t callback, void* receiver);
  /// The data with which a peer can send to this worker: addresses and a remote key, packed. Throws Error.
  std::string card() const;
  /// `cards`: by rank. Throws Error.
  void connect(const std::vector<std::string>& cards);

  const Device& device() const noexcept { return *device_; }
  const transports::EngineFailures& failures() const noexcept { return failures_; }
  ucp_worker_h get() const noexcept { return worker_.get(); }
  const Connection& connection(int peer) const noexcept { return connections_[static_cast<std::size_t>(peer)]; }
  /// False for a stranger's message, which is counted. UCX drops what a handler has not taken, including a payload that
  /// has yet to be fetched.
  bool is_ours(const void* header, std::size_t header_bytes) const noexcept {
    if (knows(header, header_bytes, secret_)) return true;
    shared_.peers.count_stranger();
    return false;
  }

  /// For engines that put. Throws Error{no_resource}.
  void pin(const Extent& extent) {
    if (device_->manner().puts) device_->register_extent(shared_.arena, extent);
  }
  /// Takes the rows of a peer's table that are new. What cannot be used is as if it was not there.
  void learn_places(int peer, const ExtentTable& table) noexcept;

  /// Moves what UCX holds and handles messages. False if there was nothing.
  bool progress() noexcept {
    constexpr int kRoundsMost = 16;
    int round = 0;
    while (round < kRoundsMost && ucp_worker_progress(worker_.get()) != 0) ++round;
    return round > 0;
  }
  /// Becomes readable when progress() has something to do; -1 if none was wanted.
  int wait_descriptor() const noexcept { return wait_descriptor_.load(std::memory_order_relaxed); }
  /// False if progress() has to be called before anybody polls the descriptor.
  bool arm() noexcept { return ucp_worker_arm(worker_.get()) == UCS_OK; }

  /// Nobody calls progress() any more.
  void give_up() noexcept;
  /// Ends the worker. `is_busy`: something is under way, so connections must be closed before.
  void close(bool is_busy) noexcept;

 private:
  void release_keys() noexcept;
  void close_connections() noexcept;

  static ucs_status_t on_nothing(void* worker, const void* header, std::size_t header_bytes, void* data,
                                 std::size_t bytes, const ucp_am_recv_param_t* how);
  static void on_error(void* connection, ucp_ep_h endpoint, ucs_status_t status);

  std::shared_ptr<Device> device_;
  Shared shared_;
  transports::EngineFailures failures_;
  std::uint64_t secret_;  ///< messages without it are dropped
  Owner<ucp_worker_h, ucp_worker_destroy> worker_;
  std::vector<Connection> connections_;
  std::atomic<int> wait_descriptor_ = -1;
  bool is_kept_ = false;
};

}  // namespace torii::ucx
