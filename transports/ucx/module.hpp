// SPDX-License-Identifier: Apache-2.0
// Opens the UCX transport, which is a separate module: a process loads UCX only if it was chosen.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/bootstrap/bootstrap.hpp"
#include "runtime/fabric/transport.hpp"
#include "transports/ucx/options.hpp"

namespace torii::ucx {

/// Collective. Throws Error on all ranks: unsupported if the module is missing (built without UCX) or a rank has no
/// usable provider, or any error of the engines.
std::unique_ptr<Transport> open(Bootstrap& bootstrap, const Options& options);

/// The providers that exist here, the usable ones, and why the others are not usable. Throws Error{unsupported} without
/// the module.
std::vector<ProviderReport> providers(const std::vector<std::string>& source_addresses = {});

}  // namespace torii::ucx
