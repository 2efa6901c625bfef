// SPDX-License-Identifier: Apache-2.0
// getaddrinfo, getifaddrs and bind, with errors that name the address.
#include "runtime/devices/address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>

#include "runtime/base/reason.hpp"
#include "runtime/base/split.hpp"
#include "runtime/base/status.hpp"

namespace torii {
namespace {

/// Calls getaddrinfo(). If the result is empty because of an error, `why_not` is set.
std::vector<Address> look_up(const std::string& host, int port, int flags, std::string& why_not) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* first = nullptr;
  const int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &first);
  std::vector<Address> addresses;
  if (code != 0) {
    why_not = gai_strerror(code);
    return addresses;
  }
  for (const addrinfo* one = first; one != nullptr; one = one->ai_next) {
    if (one->ai_family == AF_INET || one->ai_family == AF_INET6) addresses.emplace_back(one->ai_addr, one->ai_addrlen);
  }
  freeaddrinfo(first);
  return addresses;
}

bool is_scoped(const sockaddr* address) {
  if (address->sa_family != AF_INET6) return false;
  return IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

socklen_t bytes_of(const sockaddr* address) {
  if (address == nullptr) return 0;
  if (address->sa_family == AF_INET) return sizeof(sockaddr_in);
  return address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : 0;
}

std::string names_of(const std::vector<Interface>& interfaces) {
  std::vector<std::string> names;
  for (const Interface& one : interfaces) {
    if (std::ranges::find(names, one.name) == names.end()) names.push_back(one.name);
  }
  std::string text;
  for (const std::string& one : names) text += (text.empty() ? "" : ", ") + one;
  return text.empty() ? "none" : text;
}

}  // namespace

Address::Address(const sockaddr* address, socklen_t bytes) : bytes_(bytes) {
  if (bytes > sizeof(storage_)) throw Error(Status::internal, "an address of " + std::to_string(bytes) + " bytes");
  std::memcpy(&storage_, address, bytes);
}

std::vector<Address> Address::resolve(const std::string& host, int port) {
  std::string why_not = "it has no internet address";
  std::vector<Address> addresses = look_up(host, port, 0, why_not);
  if (addresses.empty()) throw Error(Status::transport, "the host '" + host + "' cannot be found: " + why_not);
  return addresses;
}

Address Address::parse(const std::string& number, int port) {
  std::string why_not;
  const std::vector<Address> addresses = look_up(number, port, AI_NUMERICHOST, why_not);
  if (addresses.empty()) {
    throw Error(Status::invalid_argument, "'" + number + "' is not an internet address such as 10.0.0.1 or fd00::1");
  }
  return addresses[0];
}

Address Address::of_socket(int socket) {
  Address address;
  address.bytes_ = sizeof(address.storage_);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address.storage_), &address.bytes_) != 0) return {};
  return address;
}

int Address::port() const noexcept {
  if (family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(storage_).sin_port);
  return family() == AF_INET6 ? ntohs(reinterpret_cast<const sockaddr_in6&>(storage_).sin6_port) : 0;
}

Address Address::with_port(int port) const noexcept {
  Address changed = *this;
  const auto number = htons(static_cast<std::uint16_t>(port));
  if (family() == AF_INET) reinterpret_cast<sockaddr_in&>(changed.storage_).sin_port = number;
  if (family() == AF_INET6) reinterpret_cast<sockaddr_in6&>(changed.storage_).sin6_port = number;
  return changed;
}

std::string_view Address::number() const noexcept {
  if (family() == AF_INET) {
    return {reinterpret_cast<const char*>(&reinterpret_cast<const sockaddr_in&>(storage_).sin_addr), 4};
  }
  if (family() != AF_INET6) return {};
  return {reinterpret_cast<const char*>(&reinterpret_cast<const sockaddr_in6&>(storage_).sin6_addr), 16};
}

std::string Address::host() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (number().empty() || inet_ntop(family(), number().data(), text, sizeof(text)) == nullptr) return "no address";
  return text;
}

std::string Address::text() const {
  return (family() == AF_INET6 ? "[" + host() + "]" : host()) + ":" + std::to_string(port());
}

bool Address::is_loopback() const noexcept {
  if (family() == AF_INET) return number()[0] == 127;
  return family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(storage_).sin6_addr);
}

bool Address::is_any() const noexcept {
  return std::ranges::all_of(number(), [](char byte) { return byte == 0; });
}

std::vector<Interface> interfaces_of_host() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) {
    throw Error(Status::no_resource, "the interfaces of this host cannot be listed" + reason(errno));
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(first, freeifaddrs);
  std::vector<Interface> interfaces;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    const socklen_t bytes = bytes_of(one->ifa_addr);
    if (bytes == 0 || (one->ifa_flags & IFF_UP) == 0 || is_scoped(one->ifa_addr)) continue;
    const bool has_mask = bytes_of(one->ifa_netmask) == bytes;
    interfaces.push_back(
        {one->ifa_name, Address(one->ifa_addr, bytes), has_mask ? Address(one->ifa_netmask, bytes) : Address()});
  }
  return interfaces;
}

std::vector<Interface> select_interfaces(std::string_view selection, const std::vector<Interface>& all) {
  std::vector<Interface> selected;
  const auto keep = [&](auto wanted) { std::ranges::copy_if(all, std::back_inserter(selected), wanted); };
  if (selection.empty()) {
    keep([](const Interface& one) { return !one.address.is_loopback(); });
    if (selected.empty()) selected = all;
  } else {
    std::string_view rest = selection;
    const bool excludes = rest.starts_with('^');
    if (excludes) rest.remove_prefix(1);
    const bool whole = rest.starts_with('=');
    if (whole) rest.remove_prefix(1);
    keep([&, names = split(rest, ',')](const Interface& one) {
      const bool named = std::ranges::any_of(
          names, [&](std::string_view name) { return whole ? one.name == name : one.name.starts_with(name); });
      return excludes ? !named && !one.address.is_loopback() : named;
    });
  }
  if (selected.empty()) {
    throw Error(Status::invalid_argument, "TORII_INTERFACE is '" + std::string(selection) +
                                              "', which selects none of the interfaces that are up: " + names_of(all));
  }
  return selected;
}

std::string network_of(const Interface& one) {
  const std::string_view number = one.address.number();
  const std::string_view mask = one.mask.number();
  if (number.empty() || mask.size() != number.size()) return one.address.host();
  const bool is_v4 = one.address.family() == AF_INET;
  in6_addr network{};
  auto* const bytes = reinterpret_cast<unsigned char*>(&network);
  int prefix = 0;
  for (std::size_t at = 0; at < number.size(); ++at) {
    bytes[at] = static_cast<unsigned char>(number[at] & mask[at]);
    prefix += std::popcount(static_cast<unsigned char>(mask[at]));
  }
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(is_v4 ? AF_INET : AF_INET6, &network, text, sizeof(text));
  return std::string(text) + "/" + std::to_string(prefix);
}

std::vector<Interface> rail_interfaces(std::string_view selection, const std::vector<Interface>& all,
                                       const std::string& offered) {
  std::vector<Interface> rails = select_interfaces(selection, all);
  const auto is_offered = [&](const Interface& one) { return one.address.host() == offered; };
  if (!offered.empty() && selection.empty() && std::ranges::none_of(rails, is_offered)) {
    rails.clear();
    std::ranges::copy_if(all, std::back_inserter(rails), is_offered);
    if (rails.empty()) rails.push_back({"", Address::parse(offered, 0), Address()});
    return rails;
  }
  const auto is_v4 = [](const Interface& one) { return one.address.family() == AF_INET; };
  const int preferred = std::ranges::any_of(rails, is_v4) ? AF_INET : AF_INET6;
  const int family = offered.empty() ? preferred : Address::parse(offered, 0).family();
  const auto is_other = [&](const Interface& one) { return one.address.family() != family; };
  if (!std::ranges::all_of(rails, is_other)) std::erase_if(rails, is_other);
  std::ranges::stable_partition(rails, is_offered);
  return rails;
}

Address source_address(const Address& peer) {
  // Connecting a datagram socket sends nothing: it only asks the kernel for the route.
  const Descriptor socket(::socket(peer.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const Address target = peer.port() != 0 ? peer : peer.with_port(9);
  if (!socket.open() || connect(socket.get(), target.get(), target.bytes()) != 0) {
    throw Error(Status::transport, "this host has no route to " + peer.host() + reason(errno));
  }
  return Address::of_socket(socket.get()).with_port(0);
}

bool is_directly_connected(const Address& peer, const std::vector<Interface>& interfaces) noexcept {
  return std::ranges::any_of(interfaces, [&](const Interface& one) {
    const std::string_view own = one.address.number();
    const std::string_view other = peer.number();
    const std::string_view mask = one.mask.number();
    if (own.size() != other.size() || mask.size() != own.size()) return false;
    for (std::size_t at = 0; at < own.size(); ++at) {
      if (((own[at] ^ other[at]) & mask[at]) != 0) return false;
    }
    return true;
  });
}

Descriptor listen_on(const Address& address, const PortRange& ports, int backlog) {
  if (address.is_any()) {
    throw Error(Status::invalid_argument, address.host() + " means every interface; name one address of this host");
  }
  const PortRange range = address.port() != 0 ? PortRange{address.port(), address.port()} : ports;
  int error = 0;
  for (int port = range.low; port <= range.high; ++port) {
    const Address one = address.with_port(port);
    Descriptor socket(::socket(one.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.open()) throw Error(Status::no_resource, "cannot make a socket" + reason(errno));
    // With SO_REUSEADDR a port is free although a connection of an earlier job used it a moment ago.
    const int yes = 1;
    setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(socket.get(), one.get(), one.bytes()) == 0 && listen(socket.get(), backlog) == 0) return socket;
    error = errno;
    if (error == EADDRNOTAVAIL) {
      throw Error(Status::unsupported, address.host() + " is not an address of this host" + reason(error));
    }
  }
  const std::string which = range.low == range.high
                                ? "port " + std::to_string(range.low)
                                : "any port from " + std::to_string(range.low) + " to " + std::to_string(range.high);
  throw Error(Status::no_resource, "cannot listen on " + which + " of " + address.host() + reason(error));
}

}  // namespace torii
