// SPDX-License-Identifier: Apache-2.0
// Opens the transports of a rank that is a fiber.
#pragma once

#include <memory>

#include "runtime/base/settings.hpp"
#include "runtime/bootstrap/bootstrap.hpp"
#include "runtime/fabric/transport.hpp"
#include "transports/fibers/wires.hpp"
#include "transports/shared_memory/arena.hpp"
#include "transports/shared_memory/node_peers.hpp"
#include "transports/shared_memory/nodes.hpp"

namespace torii::fibers {

/// Shared memory inside a node, wires between nodes. Collective, as open_transport() is.
std::unique_ptr<Transport> open(Wires& wires, bool oversubscribed, Bootstrap& bootstrap, const Settings& settings,
                                const shared_memory::Nodes& nodes, shared_memory::Arena& arena,
                                shared_memory::NodePeers& peers);

}  // namespace torii::fibers
