// SPDX-License-Identifier: Apache-2.0
// The device of each engine, on which the ranks agree before they open engines.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/bootstrap/bootstrap.hpp"
#include "transports/libfabric/api.hpp"

namespace torii::libfabric {

/// The device of each engine, for providers with their own addresses: devices near the rank's CPUs, in turn with the
/// other ranks of the host. Collective.
std::vector<std::size_t> agree_on_devices(Bootstrap& bootstrap, const std::vector<Info>& devices, int engines);

}  // namespace torii::libfabric
