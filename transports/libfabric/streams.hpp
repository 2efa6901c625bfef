// SPDX-License-Identifier: Apache-2.0
// The sockets of a provider's TCP streams.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace torii::libfabric {

/// A socket address of IPv4 or IPv6 in the kernel's form, padded with zeros.
using SocketAddress = std::array<std::byte, 28>;

/// Shuts down the TCP sockets that an epoll descriptor waits for, directly or through other epoll descriptors;
/// listeners stay. Returns their number: 0 also if the kernel does not tell (/proc) or the descriptor is of another
/// kind.
int shut_down_streams(int descriptor) noexcept;

/// The same for sockets of this process that a listener at `own` has accepted, or that are connected to a listener at
/// one of `peers`. Other connections of this process to these listeners are cut off as well.
int shut_down_streams(const SocketAddress& own, std::vector<SocketAddress> peers) noexcept;

}  // namespace torii::libfabric
