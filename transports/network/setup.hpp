// SPDX-License-Identifier: Apache-2.0
// Checks of options while a transport is made.
#pragma once

#include <cstddef>

#include "runtime/base/tuned_constants.hpp"
#include "runtime/bootstrap/bootstrap.hpp"
#include "transports/network/engine_options.hpp"

namespace torii::transports {

/// Collective. Throws Error: invalid_argument for an impossible number of engines or source address, mismatch if ranks
/// differ in engines or arena.
void check_options(Bootstrap& bootstrap, const EngineOptions& options);

/// Capabilities::put_bytes.
constexpr std::size_t put_bytes(bool over_sockets) {
  return over_sockets ? tuned<std::size_t>("sending.put_bytes_sockets") : tuned<std::size_t>("sending.put_bytes");
}

}  // namespace torii::transports
