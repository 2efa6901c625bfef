// SPDX-License-Identifier: Apache-2.0
// Internet addresses, the interfaces of this host, and listening sockets.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/descriptor.hpp"

namespace torii {

/// An IPv4 or IPv6 address with a port.
class Address {
 public:
  Address() = default;
  Address(const sockaddr* address, socklen_t bytes);
  /// All stream addresses of a name or a number, in the order of the system's resolver, which has its own time-outs.
  /// Throws Error{transport} if there is none.
  static std::vector<Address> resolve(const std::string& host, int port);
  /// A number such as "10.0.0.1"; never asks a server. Throws Error{invalid_argument}.
  static Address parse(const std::string& number, int port);
  /// The local address of a socket; an empty address if it has none.
  static Address of_socket(int socket);

  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t bytes() const noexcept { return bytes_; }
  int family() const noexcept { return storage_.ss_family; }
  int port() const noexcept;
  Address with_port(int port) const noexcept;
  /// The number without the port.
  std::string host() const;
  /// "10.0.0.1:29500" or "[fd00::1]:29500".
  std::string text() const;
  bool is_loopback() const noexcept;
  /// 0.0.0.0 or ::, which means every interface.
  bool is_any() const noexcept;
  /// The bytes of the number, most significant first: 4, 16, or none.
  std::string_view number() const noexcept;

 private:
  sockaddr_storage storage_ = {};
  socklen_t bytes_ = 0;
};

/// One address of an interface that is up. Addresses that need a scope (IPv6 fe80::) are left out.
struct Interface {
  std::string name;
  Address address;
  Address mask;
};

std::vector<Interface> interfaces_of_host();

/// The interfaces that TORII_INTERFACE selects: "eth,ib" selects names with these prefixes, "=eth0" exactly this name,
/// "^docker" and "^=eth0" all others except the loopback. An empty text selects all except the loopback, or the
/// loopback if there is nothing else. Throws Error{invalid_argument} with the existing names if nothing is selected.
std::vector<Interface> select_interfaces(std::string_view selection, const std::vector<Interface>& all);

/// The network of an interface's address, "10.90.1.0/24"; the address itself if the mask is unknown.
std::string network_of(const Interface& one);

/// The interfaces that engines may use, in order of preference. `selection` is the text of TORII_INTERFACE; `offered`
/// is the address by which peers reach this host, or empty. The result has the selected interfaces of the address
/// family of `offered` (if empty, IPv4 is preferred), the offered one first. If the text is empty and does not select
/// the offered address (ranks that joined over the loopback), the result has only the offered address.
std::vector<Interface> rail_interfaces(std::string_view selection, const std::vector<Interface>& all,
                                       const std::string& offered);

/// The address of this host from which the kernel routes to `peer`, to which `peer` can answer. Sends nothing. Throws
/// Error{transport} if there is no route.
Address source_address(const Address& peer);

/// Whether `peer` is in the network of one of the interfaces.
bool is_directly_connected(const Address& peer, const std::vector<Interface>& interfaces) noexcept;

/// The ports of which listen_on() takes one; 0 and 0: the kernel chooses.
struct PortRange {
  int low = 0;
  int high = 0;
};

/// A non-blocking socket that listens on this address, at its port, or at the first free port of the range if its port
/// is 0. Throws Error: invalid_argument for 0.0.0.0 and ::, unsupported if this host does not have the address,
/// no_resource if no port is free.
Descriptor listen_on(const Address& address, const PortRange& ports, int backlog);

}  // namespace torii
