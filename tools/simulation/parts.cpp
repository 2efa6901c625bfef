// SPDX-License-Identifier: Apache-2.0
// Decides how a network is divided.
#include "tools/simulation/parts.hpp"

#include <algorithm>
#include <vector>

#include "transports/simulated/network.hpp"

namespace torii::simulated {
namespace {

/// Parts are of so many ranks at least: a part needs many events of one instant to ask for their memory ahead.
constexpr int kRanksInPart = 2 * kStripe;
constexpr int kPartsMost = 8;

/// Whether all messages of a rank are on links that no other rank's messages use: then what a rank does concerns others
/// only when a message or a credit arrives.
bool have_own_links(const Call& call) {
  const Topology& topology = call.network.topology;
  if (topology.kind() == Topology::Kind::node || topology.tree() != nullptr || call.network.ports) return false;
  std::vector<LinkId> route;
  for (std::size_t rank = 0; rank < call.plans.size(); ++rank) {
    if (call.plans[rank].exchange.exists()) return false;
    for (const Stream& stream : call.plans[rank].out) {
      if (stream.peer == static_cast<int>(rank)) continue;
      route.clear();
      append_network_route(topology, static_cast<int>(rank), stream.peer, 0, route, stream.ties);
      if (route.size() != 1) return false;
    }
  }
  return true;
}

}  // namespace

int parts_of(const Call& call) {
  const int ranks = static_cast<int>(call.plans.size());
  const int parts = call.parts != 0 ? call.parts : std::clamp(ranks / kRanksInPart, 1, kPartsMost);
  const bool has_windows = call.network.alpha_us * kPicosecondsPerMicrosecond >= 1;
  if (parts == 1 || call.fill || call.network.sharing || call.network.jitter_us > 0 || !has_windows) return 1;
  return have_own_links(call) ? parts : 1;
}

}  // namespace torii::simulated
