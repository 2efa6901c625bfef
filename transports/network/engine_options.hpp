// SPDX-License-Identifier: Apache-2.0
// The options of a transport over a network, and its reports about providers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/log.hpp"
#include "runtime/base/settings.hpp"
#include "runtime/bootstrap/life_watch.hpp"
#include "runtime/fabric/extent.hpp"

namespace torii::transports {

struct EngineOptions {
  /// This rank's arena, which must outlive the transport.
  std::byte* arena = nullptr;
  std::size_t arena_bytes = 0;
  /// The part of the arena, from its beginning, in which providers that pin memory register extents (verbs, efa, cxi,
  /// UCX over InfiniBand). They report it as Capabilities::pinned_bytes. Other providers register the whole arena. 0:
  /// the whole arena in any case.
  std::size_t pinned_bytes = 0;
  std::size_t bytes_to_pin() const noexcept { return pinned_bytes != 0 ? pinned_bytes : arena_bytes; }
  /// The extents that such providers pin at once; Transport::pin() adds others. Empty: all of bytes_to_pin().
  std::vector<Extent> extents;
  /// By a provider that pins so many bytes; 0: it does not pin.
  std::vector<Extent> extents_to_register(std::size_t pinned) const {
    if (pinned != 0 && !extents.empty()) return extents;
    return {{0, pinned != 0 ? pinned : arena_bytes}};
  }
  int engines = 4;
  /// "auto", or a provider by its name (TORII_PROVIDER). Equal on all ranks.
  std::string provider = "auto";
  /// Numeric IPv4 or IPv6 addresses of this host (rail_interfaces()); the first is the address by which peers reach it.
  /// Engines listen on these addresses only. Engine e is in network e mod K of the K networks that all ranks have
  /// (engine_rails()), on devices near the rank's CPUs. If the ranks have no common network, all engines use the first
  /// address, or, with named_interfaces, engine e uses address e mod their number. If empty: the provider's first
  /// device that is not the loopback. Providers that are not over IP have addresses of their own and ignore these.
  std::vector<std::string> source_addresses;
  /// The user has named the interfaces of source_addresses: all are used, even slow and virtual ones.
  bool named_interfaces = false;
  /// Engines have a descriptor for sleeping, unless ranks only spin or yield. Over tcp;ofi_rxm the descriptor adds 17 %
  /// to the latency of a short put. A rank that spins for long before it sleeps therefore has none there, and sleep()
  /// sleeps in steps.
  WaitMode wait = WaitMode::automatic;
  /// More ranks than CPUs: the result of Transport::oversubscribed().
  bool oversubscribed = false;
  /// No other rank of the job is a thread of this process, so all sockets of this process's engines are this rank's.
  bool alone_in_process = false;
  /// The node of each rank; if empty, every rank is on a node of its own. Engines connect to the ranks of other nodes.
  std::vector<int> nodes;
  /// Notices the end of ranks whose engines' streams stay open; outlives the transport. nullptr: the engines alone do.
  LifeWatch* lives = nullptr;
  /// The log of the library: a module has a copy of its own, whose level nobody sets.
  void (*log)(LogLevel level, std::string_view text) noexcept = &torii::log;
  /// The longest time without progress while the engines connect (TORII_TIMEOUT).
  double timeout_s = 30;
};

inline constexpr std::string_view kPinsOnce = "the engines of a device pin memory once";
inline constexpr std::string_view kPinsEach = "each engine pins memory";

/// A provider as torii-info shows it.
struct ProviderReport {
  std::string name;     ///< the value of TORII_PROVIDER
  bool usable = false;  ///< torii can use it here
  bool fails = false;   ///< it is here, but does not open for want of something that the user can give
  bool chosen = false;  ///< `auto` selects it, in vain if it fails
  std::string reason;   ///< why it is not usable, or why `auto` does not select it; otherwise empty
  /// How often a usable provider pins a rank's arena: kPinsOnce or kPinsEach; empty if it pins nothing.
  std::string pinning;
  std::vector<std::string> devices;
};

}  // namespace torii::transports
