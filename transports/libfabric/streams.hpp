// SPDX-License-Identifier: Apache-2.0
// The sockets of a provider's TCP streams.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace torii::libfabric {

/// A socket address of IPv4 or IPv6 as the kernel has it, zeros behind it.
using SocketAddress = std::array<std::byte, 28>;

/// Shuts down the TCP sockets that an epoll descriptor waits for, directly or through other epoll descriptors;
/// listeners stay. Returns how many there are: 0 also where the kernel does not tell (/proc) and for a descriptor of
/// another kind.
int shut_down_streams(int descriptor) noexcept;

/// The same for the sockets of this process that a listener at `own` has accepted, or that are connected to a listener
/// at one of `peers`. Whoever else in this process talks to these listeners is cut off as well.
int shut_down_streams(const SocketAddress& own, std::vector<SocketAddress> peers) noexcept;

}  // namespace torii::libfabric
