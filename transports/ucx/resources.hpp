// SPDX-License-Identifier: Apache-2.0
// The resources of UCX on this machine, which are transports on devices, and their abilities.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace torii::ucx {

/// Abilities that an engine asks for.
struct Abilities {
  bool messages = false;     ///< active messages
  bool puts = false;         ///< reaches registered memory of a peer without the peer's CPU
  bool peer_errors = false;  ///< reports that a peer is gone
};

/// A transport on a device, which UCX calls a resource.
struct Resource {
  std::string component;  ///< "ib", "tcp", "posix"
  std::string transport;  ///< "rc_mlx5", "tcp", "posix"
  std::string name;       ///< "mlx5_0:1", "eth0", "memory"
  bool is_network = false;
  Abilities abilities;  ///< known only of transports that were opened
};

/// All resources; those that `opens` accepts are opened for a moment and asked for their abilities.
std::vector<Resource> list_resources(const std::function<bool(const Resource& resource)>& opens);

/// True if the resource belongs to a word of UCX_TLS: the transport, or a group such as ib, rc, ud_x.
bool is_of(const Resource& resource, std::string_view word);

/// The interface that has the address; empty if there is none.
std::string interface_of(const std::string& address);
/// True for the interface itself, for the InfiniBand or RoCE port under it, and for a device of software above it.
/// `sysfs` is the place of /sys.
bool stands_on(const Resource& resource, const std::string& interface, const std::string& sysfs = "/sys");
/// The number of this host's address among those of a RoCE port, such as "mlx5_0:1"; empty if the port does not have
/// it.
std::string gid_index(const std::string& port, const std::string& address, const std::string& sysfs = "/sys");

}  // namespace torii::ucx
