// SPDX-License-Identifier: Apache-2.0
// The common state of a transport's engines.
#pragma once

#include <cstddef>

#include "transports/libfabric/arrivals.hpp"
#include "transports/network/peer_states.hpp"
#include "transports/network/sleepers.hpp"

namespace torii::libfabric {

struct Shared {
  std::byte* arena;
  std::size_t registered_bytes;  ///< of the arena, at most, from its beginning
  int rank;
  int ranks;
  Arrivals& arrivals;
  transports::PeerStates& peers;
  transports::Sleepers& sleepers;
  bool sleeps;            ///< completion queues have a descriptor if the provider offers one
  bool alone_in_process;  ///< see EngineOptions
  bool probes;            ///< peers are asked whether they live
};

}  // namespace torii::libfabric
