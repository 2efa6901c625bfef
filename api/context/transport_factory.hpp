// SPDX-License-Identifier: Apache-2.0
// Selects the transports of a context by the setting TRANSPORT and the nodes of the ranks.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/settings.hpp"
#include "runtime/bootstrap/bootstrap.hpp"
#include "runtime/execution/transport.hpp"
#include "transports/shared_memory/arena.hpp"
#include "transports/shared_memory/node_peers.hpp"
#include "transports/shared_memory/nodes.hpp"

namespace torii {

/// The nodes of the job as the setting has them: ranks that it reaches over a fabric do not share one. Collective.
/// Throws Error on all ranks: mismatch when the setting differs, unsupported for a transport that this build has not,
/// or for shared_memory on several nodes.
std::unique_ptr<shared_memory::Nodes> find_nodes(Bootstrap& bootstrap, const Settings& settings);

/// Shared memory alone when all ranks are on one node, otherwise with a fabric between nodes: the one that is set, or
/// the first that this build has. Collective; what is passed outlives the transport, but for `bootstrap` and
/// `settings`. Throws Error on all ranks.
std::unique_ptr<Transport> open_transport(Bootstrap& bootstrap, const Settings& settings,
                                          const shared_memory::Nodes& nodes, shared_memory::Arena& arena,
                                          shared_memory::NodePeers& peers);

}  // namespace torii
