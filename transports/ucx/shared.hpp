// SPDX-License-Identifier: Apache-2.0
// The common state of a transport's engines.
#pragma once

#include <cstddef>

#include "transports/network/peer_states.hpp"
#include "transports/network/sleepers.hpp"

namespace torii::ucx {

struct Shared {
  std::byte* arena;
  std::size_t arena_bytes;
  int rank;
  int ranks;
  transports::PeerStates& peers;
  transports::Sleepers& sleepers;
};

}  // namespace torii::ucx
