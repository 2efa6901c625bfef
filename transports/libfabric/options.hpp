// SPDX-License-Identifier: Apache-2.0
// What the libfabric transport is made from; nothing here needs libfabric.
#pragma once

#include "transports/network/engine_options.hpp"

namespace torii::libfabric {

using transports::ProviderReport;

/// Providers are called as fi_info names them. Listeners stand on the source addresses and on no other.
struct Options : transports::EngineOptions {
  /// Per engine: memory for payloads that lie outside the arena, where the provider wants its sources registered. A put
  /// from outside carries at most this much less a line.
  std::size_t bounce_bytes = std::size_t{4} << 20;
  /// Per engine: about so many writes are under way at most, fewer where the provider takes fewer. At least 16.
  std::size_t operations = 1024;
};

}  // namespace torii::libfabric
