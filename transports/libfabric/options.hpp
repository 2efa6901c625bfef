// SPDX-License-Identifier: Apache-2.0
// What the libfabric transport is made from, and what it reports about providers; nothing here needs libfabric.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace torii::libfabric {

struct Options {
  /// The own arena: one range of memory, alive until the transport is gone. Registered once per engine, as a whole:
  /// providers that pin memory (verbs, efa, cxi) need an arena that the limit of locked memory allows.
  std::byte* arena = nullptr;
  std::size_t arena_bytes = 0;
  int engines = 4;
  /// "auto", or a provider as fi_info names it. Equal on all ranks.
  std::string provider = "auto";
  /// Numeric IPv4 or IPv6 addresses of this host; engine e uses number e mod their count. Listeners stand on these
  /// addresses and on no other. Empty: the provider's first device that is not the loopback.
  std::vector<std::string> source_addresses;
  /// Per engine: memory for payloads that lie outside the arena, where the provider wants its sources registered. A put
  /// from outside carries at most this much less a line.
  std::size_t bounce_bytes = std::size_t{4} << 20;
  /// More ranks than CPUs: what Transport::oversubscribed() answers.
  bool oversubscribed = false;
};

/// What torii-info shows of one provider.
struct ProviderReport {
  std::string name;     ///< as TORII_PROVIDER takes it
  bool usable = false;  ///< torii could run over it here
  bool chosen = false;  ///< `auto` takes it
  std::string reason;   ///< why it is not usable, or not taken by `auto`; empty when neither
  std::vector<std::string> devices;
};

}  // namespace torii::libfabric
