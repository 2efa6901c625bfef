// SPDX-License-Identifier: Apache-2.0
// Internet addresses, the interfaces of this host that hold them, and sockets that listen on one of them.
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
  /// All stream addresses of a name or a number, in the order of the system's resolver, which has time-outs of its own.
  /// Throws Error{transport} when there is none.
  static std::vector<Address> resolve(const std::string& host, int port);
  /// A number such as "10.0.0.1"; never asks a server. Throws Error{invalid_argument}.
  static Address parse(const std::string& number, int port);
  /// The address at this end of a connected socket; the empty address when it has none.
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
  /// Reached from this host only.
  bool is_loopback() const noexcept;
  /// 0.0.0.0 or ::, which stands for every interface.
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

/// The interfaces that TORII_INTERFACE selects: "eth,ib" those whose names begin so, "=eth0" those with exactly that
/// name, "^docker" all but those and the loopback, "^=eth0" likewise. Empty text selects all but the loopback, and
/// the loopback alone where there is nothing else. Throws Error{invalid_argument} when nothing is selected, with the
/// names that exist.
std::vector<Interface> select_interfaces(std::string_view selection, const std::vector<Interface>& all);

/// The network that an interface's address lies in, "10.90.1.0/24"; the address itself where the mask is not known.
std::string network_of(const Interface& one);

/// The interfaces that engines may stand on, in order of preference: those of `selected` in the family of `offered`,
/// the number of the address by which peers reach this host (empty: IPv4 where there is any), that before the others.
/// Where `selection`, the text of TORII_INTERFACE, names no interface and the offered address is none of `selected`
/// (ranks that meet over the loopback), that address alone.
std::vector<Interface> rail_interfaces(std::string_view selection, const std::vector<Interface>& all,
                                       const std::string& offered);

/// The address of this host from which the kernel routes to `peer`: what a peer can be told to answer to. Nothing is
/// sent. Throws Error{transport} when there is no route.
Address source_address(const Address& peer);

/// True when `peer` lies in the network of one of the interfaces.
bool is_directly_connected(const Address& peer, const std::vector<Interface>& interfaces) noexcept;

/// What listen_on() chooses a port from; 0 and 0: the kernel chooses.
struct PortRange {
  int low = 0;
  int high = 0;
};

/// A non-blocking listening socket on that address alone; of the range the first port that is free, or the address's
/// own port when that is not 0. Throws Error: invalid_argument for 0.0.0.0 and ::, unsupported when it is no address of
/// this host, no_resource when no port is free.
Descriptor listen_on(const Address& address, const PortRange& ports, int backlog);

}  // namespace torii
