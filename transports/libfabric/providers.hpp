// SPDX-License-Identifier: Apache-2.0
// Which providers of libfabric exist here, what they want, and which one a job uses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/bootstrap/bootstrap.hpp"
#include "transports/libfabric/api.hpp"
#include "transports/libfabric/options.hpp"

namespace torii::libfabric {

/// libfabric reads its settings when a process first calls it, so the first call counts: the settings that suit torii,
/// for jobs of this many ranks. list_providers() and find_devices() call it themselves, for small jobs.
void start_quietly(const Api& api, int ranks);

/// True if addresses are IP addresses, so that a source address identifies the device.
bool is_over_ip(std::string_view provider);

/// True if a peer's address is that of a TCP listener, which ends with its process. verbs uses addresses of the same
/// format for other connections.
bool listens_on_tcp(std::string_view provider, std::uint32_t address_format);

/// All providers that torii knows or this libfabric has, in the order in which `auto` tries them. Opens the first
/// usable ones, until one opens: that one is chosen.
std::vector<ProviderReport> list_providers(const Api& api, const std::vector<std::string>& source_addresses);

/// The providers that all ranks can use, in the order in which a job tries to open them: `wanted` alone, or for "auto"
/// those of the order above. Collective. Throws Error: mismatch if ranks want different ones, unsupported with the rank
/// that cannot, and the reason.
std::vector<std::string> usable_providers(Bootstrap& bootstrap, const Api& api, const std::string& wanted,
                                          const std::vector<std::string>& source_addresses);

/// Descriptions for opening engines: one per device of the provider, from the given source address (empty: the first
/// device and those of the same fabric). Throws Error{unsupported} with the reason if there is none.
std::vector<Info> find_devices(const Api& api, const std::string& provider, const std::string& source_address);

}  // namespace torii::libfabric
