// SPDX-License-Identifier: Apache-2.0
// Selects the transports of a context by the setting TRANSPORT and the nodes of the ranks.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/base/settings.hpp"
#include "runtime/bootstrap/bootstrap.hpp"
#include "runtime/fabric/transport.hpp"

namespace torii {

namespace shared_memory {
class Arena;
class NodePeers;
class Nodes;
}  // namespace shared_memory

/// Finds the nodes of the job. If the setting names a fabric, every rank is a node of its own. Collective. Throws Error
/// on all ranks. The status is mismatch if the setting differs, unsupported for a transport that this build lacks and
/// for shared_memory on several nodes.
std::unique_ptr<shared_memory::Nodes> find_nodes(Bootstrap& bootstrap, const Settings& settings);

/// Opens shared memory if all ranks are on one node. Otherwise opens it with a fabric between nodes: the fabric of the
/// setting, or the first usable one. Collective. `nodes`, `arena` and `peers` must outlive the transport. Throws Error
/// on all ranks.
std::unique_ptr<Transport> open_transport(Bootstrap& bootstrap, const Settings& settings,
                                          const shared_memory::Nodes& nodes, shared_memory::Arena& arena,
                                          shared_memory::NodePeers& peers);

/// open_transport(), or a function that opens other transports under the same conditions.
using TransportOpener = std::function<decltype(open_transport)>;

}  // namespace torii
