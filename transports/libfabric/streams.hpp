// SPDX-License-Identifier: Apache-2.0
// The sockets that a provider waits for.
#pragma once

namespace torii::libfabric {

/// Shuts down the TCP sockets that an epoll descriptor waits for, directly or through other epoll descriptors;
/// listeners stay. Returns how many there are: 0 also where the kernel does not tell (/proc) and for a descriptor of
/// another kind.
int shut_down_streams(int descriptor) noexcept;

}  // namespace torii::libfabric
