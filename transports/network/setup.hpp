// SPDX-License-Identifier: Apache-2.0
// Steps that ranks take together while a transport is made: each succeeds on all ranks or fails alike on all.
#pragma once

#include <sys/socket.h>

#include <functional>
#include <string>
#include <vector>

#include "runtime/bootstrap/bootstrap.hpp"
#include "transports/network/engine_options.hpp"

namespace torii::transports {

/// Runs a step on all ranks; when it fails on one, all throw that rank's error.
void together(Bootstrap& bootstrap, const std::function<void()>& step);

/// Collective. Throws Error: invalid_argument for a number of engines or a source address that cannot be, mismatch when
/// ranks differ in engines or arena.
void check_options(Bootstrap& bootstrap, const EngineOptions& options);

/// Capabilities::put_bytes: over sockets a put takes 4 to 6 us (perf/transports), in which fast Ethernet adapters and
/// the loopback move some 16 KiB. Of the others it has not been measured; a microsecond at 4 GB/s is meant.
constexpr std::size_t put_bytes(bool over_sockets) { return over_sockets ? 16384 : 4096; }

/// A numeric IPv4 or IPv6 address. Throws Error{invalid_argument} for anything else.
sockaddr_storage parse_source(const std::string& text);

}  // namespace torii::transports
