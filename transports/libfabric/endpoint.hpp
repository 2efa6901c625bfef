// SPDX-License-Identifier: Apache-2.0
// An endpoint of a device, with its completion queue and the addresses of its peers.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "transports/libfabric/api.hpp"
#include "transports/libfabric/device.hpp"
#include "transports/libfabric/streams.hpp"

namespace torii::libfabric {

/// Not thread-safe but for wait_descriptor().
class Endpoint {
 public:
  /// The queue has a descriptor for sleeping if that is wanted and the provider offers one. Throws Error: no_resource
  /// if memory is short, otherwise unsupported, after which `auto` tries another provider.
  Endpoint(std::shared_ptr<Device> device, int ranks, bool sleeps);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// Offers the descriptor for sleeping, if there is one, from now on.
  void offer_descriptor() noexcept;

  Device& device() const noexcept { return *device_; }
  const fi_info& info() const noexcept { return device_->info(); }
  fid_ep* get() const noexcept { return endpoint_.get(); }
  fid_cq* queue() const noexcept { return queue_.get(); }
  /// Its own address, of which it returns the length. Throws Error{transport}.
  std::size_t put_name(std::span<std::byte> name) const;
  /// False for bytes that are no address to the provider.
  bool insert(const std::byte* name, fi_addr_t& address) noexcept {
    return fi_av_insert(addresses_.get(), name, 1, &address, 0, nullptr) == 1;
  }

  /// Becomes readable when the queue has something; -1: none.
  int wait_descriptor() const noexcept { return wait_descriptor_.load(std::memory_order_relaxed); }
  /// False if the queue has to be read before anybody polls the descriptor. A permission to sleep is valid until
  /// something is put or arrives (disarm()).
  bool arm() noexcept;
  void disarm() noexcept { is_armed_ = false; }

  /// Shuts down the sockets of its streams, if they can be told from others: by the descriptor, or if all sockets of
  /// the process to and from these `peers` are its own (`is_alone`).
  void end_streams(bool is_alone, const std::vector<SocketAddress>& peers) noexcept;
  /// Ends the endpoint, not its queue.
  void close() noexcept;
  /// It will stay open as long as the process, with all that it needs.
  void keep() noexcept;

 private:
  fid* waited() const noexcept { return watch_ != nullptr ? &watch_->fid : &queue_->fid; }
  int shut_down_own_streams(bool is_alone, const std::vector<SocketAddress>& peers) noexcept;

  std::shared_ptr<Device> device_;
  // Closed from the last to the first.
  Fid<fid_cq> queue_;
  Fid<fid_cq> watch_;  ///< has the descriptor for sleeping if the one of `queue_` is of no use
  Fid<fid_av> addresses_;
  Fid<fid_ep> endpoint_;
  std::atomic<int> wait_descriptor_ = -1;
  bool sleeps_;
  bool is_kept_ = false;
  bool is_armed_ = false;  ///< the descriptor becomes readable when something happens
};

}  // namespace torii::libfabric
