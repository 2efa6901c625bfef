// SPDX-License-Identifier: Apache-2.0
// Checks of options while a transport is made.
#pragma once

#include <cstddef>

#include "runtime/bootstrap/bootstrap.hpp"
#include "transports/network/engine_options.hpp"

namespace torii::transports {

/// Collective. Throws Error: invalid_argument for an impossible number of engines or source address, mismatch if ranks
/// differ in engines or arena.
void check_options(Bootstrap& bootstrap, const EngineOptions& options);

/// Capabilities::put_bytes. Over sockets a put takes 4 to 6 us (perf/transports), in which fast Ethernet adapters and
/// the loopback move some 16 KiB. Other networks have not been measured: the value is one microsecond at 4 GB/s.
constexpr std::size_t put_bytes(bool over_sockets) { return over_sockets ? 16384 : 4096; }

}  // namespace torii::transports
