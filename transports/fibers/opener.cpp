// SPDX-License-Identifier: Apache-2.0
// One node or several.
#include "transports/fibers/opener.hpp"

#include <utility>

#include "transports/fibers/network.hpp"
#include "transports/fibers/node.hpp"
#include "transports/mixed/mixed.hpp"

namespace torii::fibers {

std::unique_ptr<Transport> open(Wires& wires, bool oversubscribed, Bootstrap& bootstrap, const Settings& settings,
                                const shared_memory::Nodes& nodes, shared_memory::Arena& arena,
                                shared_memory::NodePeers& peers) {
  auto memory = std::make_unique<shared_memory::SharedMemory>(bootstrap, arena, peers, settings.engines,
                                                              settings.cross_memory, settings.hop);
  auto inside = std::make_unique<Node>(wires, std::move(memory), oversubscribed);
  if (nodes.count() == 1) return inside;
  transports::EngineOptions options;
  options.arena = arena.base();
  options.arena_bytes = arena.bytes();
  options.engines = settings.engines;
  options.wait = settings.wait;
  options.oversubscribed = oversubscribed;
  for (int rank = 0; rank < nodes.ranks(); ++rank) options.nodes.push_back(nodes.node(rank));
  options.timeout_s = settings.timeout_s;
  auto between = std::make_unique<Network>(wires, bootstrap, options);
  return std::make_unique<mixed::Mixed>(nodes, std::move(inside), std::move(between));
}

}  // namespace torii::fibers
