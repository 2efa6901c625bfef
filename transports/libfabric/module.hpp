// SPDX-License-Identifier: Apache-2.0
// The door to the libfabric transport, which is a module of its own: libfabric is in a process only when it was chosen.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/bootstrap/exchange.hpp"
#include "runtime/execution/transport.hpp"
#include "transports/libfabric/options.hpp"

namespace torii::libfabric {

/// Collective. Throws Error: unsupported when the module is not there (built without libfabric) or a rank has no
/// usable provider, and whatever else the engines fail with, on all ranks.
std::unique_ptr<Transport> open(Exchange& exchange, const Options& options);

/// Which providers exist here, which are usable, why the others are not. Throws Error{unsupported} without the module.
std::vector<ProviderReport> providers(const std::vector<std::string>& source_addresses = {});

}  // namespace torii::libfabric
