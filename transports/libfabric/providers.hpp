// SPDX-License-Identifier: Apache-2.0
// Which providers of libfabric exist here, what they want, and which one a job takes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/bootstrap/exchange.hpp"
#include "transports/libfabric/api.hpp"
#include "transports/libfabric/options.hpp"

namespace torii::libfabric {

/// True where addresses are those of IP, so that a source address says which device is meant.
bool is_over_ip(std::string_view provider);

/// True where a peer's address is that of a TCP listener, which ends with its process. verbs has addresses of the same
/// format for connections of another kind.
bool listens_on_tcp(std::string_view provider, std::uint32_t address_format);

/// Every provider that torii knows or this libfabric has, in the order in which `auto` tries them.
std::vector<ProviderReport> list_providers(const Api& api, const std::vector<std::string>& source_addresses);

/// The provider that all ranks can use: `wanted`, or for "auto" the first of the order above. Collective. Throws
/// Error: mismatch when ranks want different ones, unsupported with the rank that cannot, and why.
std::string choose_provider(Exchange& exchange, const Api& api, const std::string& wanted,
                            const std::vector<std::string>& source_addresses);

/// What engines are opened with: one description per device of the provider, from the given source address (empty: the
/// first device and those of the same fabric). Throws Error{unsupported} with the reason when there is none.
std::vector<Info> find_devices(const Api& api, const std::string& provider, const std::string& source_address);

}  // namespace torii::libfabric
