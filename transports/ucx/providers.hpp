// SPDX-License-Identifier: Apache-2.0
// Which lists of UCX's transports a job can take, and over which devices.
#pragma once

#include <string>
#include <vector>

#include "runtime/bootstrap/exchange.hpp"
#include "transports/ucx/devices.hpp"
#include "transports/ucx/options.hpp"

namespace torii::ucx {

/// The providers that torii knows, in the order in which `auto` tries them.
std::vector<ProviderReport> list_providers(const std::vector<std::string>& source_addresses);

/// The provider that all ranks can use. Collective. Throws Error: mismatch, unsupported.
std::string choose_provider(Exchange& exchange, const std::string& wanted,
                            const std::vector<std::string>& source_addresses);

/// What one engine is opened on, and what the transports there can do together.
struct Selection {
  std::string transports;  ///< as UCX_TLS takes it
  std::string devices;     ///< as UCX_NET_DEVICES takes it; nothing where the provider needs no network
  std::vector<std::string> components;
  Abilities abilities;
};

/// True unless all of its components are known to leave memory where it is: those over sockets and shared memory.
bool pins_memory(const Selection& selection);

/// One per interface, from these devices; an empty interface stands for the first device that is not the loopback.
/// Returns why that is not possible, or nothing.
std::string select(const std::vector<Device>& all, const std::string& provider,
                   const std::vector<std::string>& interfaces, std::vector<Selection>& selections);

/// One per source address; engine e takes number e mod their count. Throws Error{unsupported}.
std::vector<Selection> find_selections(const std::string& provider, const std::vector<std::string>& source_addresses);

}  // namespace torii::ucx
