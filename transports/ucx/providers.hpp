// SPDX-License-Identifier: Apache-2.0
// The lists of UCX's transports that a job can use, and their devices.
#pragma once

#include <string>
#include <vector>

#include "runtime/bootstrap/bootstrap.hpp"
#include "transports/ucx/options.hpp"
#include "transports/ucx/resources.hpp"

namespace torii::ucx {

/// The providers that torii knows, in the order in which `auto` tries them.
std::vector<ProviderReport> list_providers(const std::vector<std::string>& source_addresses);

/// The provider that all ranks can use. Collective. Throws Error: mismatch, unsupported.
std::string choose_provider(Bootstrap& bootstrap, const std::string& wanted,
                            const std::vector<std::string>& source_addresses);

/// The devices and transports of one engine, and the abilities that they have together.
struct Selection {
  std::string transports;  ///< as UCX_TLS takes it
  std::string devices;     ///< as in UCX_NET_DEVICES; empty if the provider needs no network
  std::vector<std::string> components;
  bool is_plain_verbs = false;  ///< a device that is InfiniBand or RoCE, but none of mlx5
  std::string gid_index;        ///< as in UCX_IB_GID_INDEX: the source address of a RoCE port; empty: UCX chooses
  Abilities abilities;

  bool has_devices_of(const Selection& other) const {
    return transports == other.transports && devices == other.devices && gid_index == other.gid_index;
  }
};

/// True unless all components are known not to pin memory: those over sockets and shared memory.
bool pins_memory(const Selection& selection);

/// One per interface, from these resources; an empty interface means the first device that is not the loopback. Returns
/// the reason if that is not possible, or nothing.
std::string select(const std::vector<Resource>& all, const std::string& provider,
                   const std::vector<std::string>& interfaces, std::vector<Selection>& selections);

/// One per source address; engine e uses number e mod their count. Throws Error{unsupported}.
std::vector<Selection> find_selections(const std::string& provider, const std::vector<std::string>& source_addresses);

}  // namespace torii::ucx
