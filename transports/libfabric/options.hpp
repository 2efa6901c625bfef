// SPDX-License-Identifier: Apache-2.0
// Options of the libfabric transport; this header does not need libfabric.
#pragma once

#include "transports/network/engine_options.hpp"

namespace torii::libfabric {

using transports::ProviderReport;

/// Providers have fi_info's names. Listeners use the source addresses and no other.
struct Options : transports::EngineOptions {
  /// Per engine: memory for payloads outside the arena, if the provider wants its sources registered. A put from
  /// outside carries at most this much minus a line.
  std::size_t bounce_bytes = std::size_t{4} << 20;
  /// Per engine: about the most writes under way, at least 16; fewer if the provider takes fewer.
  std::size_t operations = 1024;
};

}  // namespace torii::libfabric
