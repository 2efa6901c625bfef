// SPDX-License-Identifier: Apache-2.0
// One rank's interface to a virtual network: peers are not mapped, and puts arrive by virtual time.
#pragma once

#include "runtime/fabric/transport.hpp"
#include "transports/simulated/network.hpp"

namespace torii::simulated {

/// One thread runs all ranks of a network and moves the network itself, so progress() has nothing to do.
class Simulated final : public Transport {
 public:
  Simulated(Network& network, int rank) : network_(&network), rank_(rank) {
    capabilities_ = {.name = "simulated",
                     .engines = network.model().engines,
                     .selects_ties = true,
                     .deals_engines = network.model().engine_rates.empty()};
  }

  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  int rank() const noexcept override { return rank_; }
  int ranks() const noexcept override { return network_->model().topology.ranks(); }
  int node(int rank) const noexcept override { return rank; }
  std::byte* mapped(int peer, std::uint64_t offset) noexcept override {
    return peer == rank_ ? network_->arena(peer) + offset : nullptr;
  }
  Status put(const Put& put) noexcept override { return network_->put(rank_, put); }
  Status put_word(int peer, std::uint64_t offset, std::uint64_t value) noexcept override {
    return network_->put_word(rank_, peer, offset, value);
  }
  Status progress() noexcept override { return Status::ok; }
  bool drained() noexcept override { return network_->drained(rank_); }
  std::int64_t clock_ns() const noexcept override { return network_->now() / kPicosecondsPerNanosecond; }
  /// No rank sleeps: a rank is asked again when something has arrived for it.
  void sleep(SleepMark&, int, bool (*)(void* data), void*) noexcept override {}
  bool alive(int) noexcept override { return true; }
  bool oversubscribed() const noexcept override { return false; }

 private:
  Network* network_;
  int rank_;
  Capabilities capabilities_;
};

}  // namespace torii::simulated
