// SPDX-License-Identifier: Apache-2.0
// What a transport over a network is made from, and what it reports about the ways it can go.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/base/settings.hpp"

namespace torii::transports {

struct EngineOptions {
  /// The own arena: one range of memory, alive until the transport is gone. Engines that register it do so once each.
  std::byte* arena = nullptr;
  std::size_t arena_bytes = 0;
  /// Providers that pin memory (verbs, efa, cxi, UCX over InfiniBand) register so much of it, from its beginning on,
  /// and say so in Capabilities::pinned_bytes; the others all of it. 0: all of it in any case.
  std::size_t pinned_bytes = 0;
  std::size_t bytes_to_pin() const noexcept { return pinned_bytes != 0 ? pinned_bytes : arena_bytes; }
  int engines = 4;
  /// "auto", or a provider by its name (TORII_PROVIDER). Equal on all ranks.
  std::string provider = "auto";
  /// Numeric IPv4 or IPv6 addresses of this host, that by which peers reach it first (rail_interfaces()). Ranks agree
  /// which of them serve: engine e stands in network e mod K of the K networks that all ranks have (engine_rails()),
  /// on addresses of devices near the rank's CPUs. Listeners stand on these addresses and on no other. Where no network
  /// is common: the first address, or, of named interfaces, number e mod their count. Empty: the provider's first
  /// device that is not the loopback. Providers that are not over IP have addresses of their own and pay no heed.
  std::vector<std::string> source_addresses;
  /// The user has named the interfaces of source_addresses: all serve, fast or slow, physical or not.
  bool named_interfaces = false;
  /// Engines have a descriptor to sleep on, unless ranks only spin or yield. Over tcp;ofi_rxm it makes a short put
  /// dearer by a sixth, so there a rank that spins for long before it sleeps does without; sleep() then sleeps in
  /// steps.
  WaitMode wait = WaitMode::automatic;
  /// More ranks than CPUs: what Transport::oversubscribed() answers.
  bool oversubscribed = false;
  /// No other rank of the job is a thread of this process, whose sockets could be taken for those of this one.
  bool alone_in_process = false;
  /// The node of each rank; empty: every rank is one of its own. Engines connect to the ranks of other nodes.
  std::vector<int> nodes;
  /// How long connecting to the peers may make no progress (TORII_TIMEOUT).
  double timeout_s = 30;
};

/// What torii-info shows of one provider.
struct ProviderReport {
  std::string name;     ///< as TORII_PROVIDER takes it
  bool usable = false;  ///< torii could run over it here
  bool chosen = false;  ///< `auto` takes it
  std::string reason;   ///< why it is not usable, or not taken by `auto`; empty when neither
  std::vector<std::string> devices;
};

}  // namespace torii::transports
