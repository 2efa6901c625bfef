// SPDX-License-Identifier: Apache-2.0
// The door to the UCX transport, which is a module of its own: UCX is in a process only when it was chosen.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/bootstrap/exchange.hpp"
#include "runtime/execution/transport.hpp"
#include "transports/ucx/options.hpp"

namespace torii::ucx {

/// Collective. Throws Error: unsupported when the module is not there (built without UCX) or a rank has no usable
/// provider, and whatever else the engines fail with, on all ranks.
std::unique_ptr<Transport> open(Exchange& exchange, const Options& options);

/// Which providers exist here, which are usable, why the others are not. Throws Error{unsupported} without the module.
std::vector<ProviderReport> providers(const std::vector<std::string>& source_addresses = {});

}  // namespace torii::ucx
