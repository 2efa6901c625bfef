// SPDX-License-Identifier: Apache-2.0
// Lists the fabrics, one line each, and finds the addresses on which a fabric listens.
#include "api/context/transport_factory.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/base/status.hpp"
#include "runtime/bootstrap/agreement.hpp"
#include "runtime/bootstrap/life_watch.hpp"
#include "runtime/devices/address.hpp"
#include "transports/libfabric/module.hpp"
#include "transports/mixed/mixed.hpp"
#include "transports/shared_memory/shared_memory.hpp"
#include "transports/ucx/module.hpp"

namespace torii {
namespace {

using shared_memory::Nodes;

struct Fabric {
  const char* name;
  std::unique_ptr<Transport> (*open)(Bootstrap& bootstrap, const transports::EngineOptions& options);
};

/// Calls a fabric's open() with these options; the options that only this fabric has keep their defaults.
template <typename Options, std::unique_ptr<Transport> (*open)(Bootstrap&, const Options&)>
std::unique_ptr<Transport> open_with(Bootstrap& bootstrap, const transports::EngineOptions& options) {
  Options own;
  static_cast<transports::EngineOptions&>(own) = options;
  return open(bootstrap, own);
}

/// In the order in which `auto` tries them.
constexpr Fabric kFabrics[] = {{"libfabric", open_with<libfabric::Options, libfabric::open>},
                               {"ucx", open_with<ucx::Options, ucx::open>}};

bool is_fabric(const std::string& name) {
  return std::any_of(std::begin(kFabrics), std::end(kFabrics), [&](const Fabric& one) { return name == one.name; });
}

/// The addresses on which the fabric may listen: those of rail_interfaces(), with the address over which the ranks
/// joined. If that address is unknown and no interface is set, the loopback if it reaches all ranks. Otherwise none,
/// which leaves the choice to the provider.
std::vector<std::string> source_addresses(const Bootstrap& bootstrap, const Settings& settings, const Nodes& nodes) {
  std::string offered = bootstrap.address();
  if (offered.empty() && settings.interfaces.empty()) {
    if (!nodes.loopback_reaches_all()) return {};
    offered = "127.0.0.1";
  }
  std::vector<std::string> addresses;
  for (const Interface& one : rail_interfaces(settings.interfaces, interfaces_of_host(), offered)) {
    addresses.push_back(one.address.host());
  }
  return addresses;
}

std::unique_ptr<Transport> open_fabric(Bootstrap& bootstrap, const Settings& settings,
                                       const transports::EngineOptions& options) {
  std::string reasons;
  for (const Fabric& fabric : kFabrics) {
    if (settings.transport != "auto" && settings.transport != fabric.name) continue;
    try {
      return all_or_none(bootstrap, [&](Bootstrap& agreed) { return fabric.open(agreed, options); });
    } catch (const Error& error) {
      // All ranks throw the same error, so all try the next fabric.
      if (settings.transport != "auto" || error.status() != Status::unsupported) throw;
      reasons += std::string(reasons.empty() ? "" : "; ") + fabric.name + ": " + error.what();
    }
  }
  throw Error(Status::unsupported, "the ranks are on several nodes, and no fabric is usable: " + reasons);
}

/// The part of the arena that may be pinned: as of the fabric of an earlier context. Otherwise the whole arena if the
/// user has set ARENA, else as much as the machine allows.
std::size_t wanted_pinned_bytes(const Settings& settings, const Nodes& nodes, const shared_memory::Arena& arena) {
  if (arena.is_pinned()) return arena.capacity_bytes();
  for (const SettingView& row : settings.list()) {
    if (row.name == "TORII_ARENA" && row.origin != Origin::fallback) return arena.bytes();
  }
  return std::min(shared_memory::Arena::pinnable_bytes(nodes.own_ranks()), arena.bytes());
}

/// If the fabric of any rank pins memory, all arenas have the size of the smallest part that may be pinned: teams take
/// equal memory on all ranks. A fabric that does not pin has all of it registered. The result ends the pinning, before
/// the fabric is closed.
std::shared_ptr<const void> pin(Bootstrap& bootstrap, Transport& fabric, shared_memory::Arena& arena,
                                const std::vector<Extent>& pinned) {
  std::uint64_t least = UINT64_MAX;
  for (const std::uint64_t most : gather_values(bootstrap, std::uint64_t{fabric.capabilities().pinned_bytes})) {
    if (most != 0) least = std::min(least, most);
  }
  if (least == UINT64_MAX) return nullptr;
  return arena.pin(least, pinned, [&fabric](const Extent& extent) { fabric.pin(extent); });
}

}  // namespace

std::unique_ptr<Nodes> find_nodes(Bootstrap& bootstrap, const Settings& settings) {
  const std::vector<std::string> asked = gather_texts(bootstrap, settings.transport);
  for (std::size_t rank = 1; rank < asked.size(); ++rank) {
    if (asked[rank] == asked[0]) continue;
    throw Error(
        Status::mismatch,
        "rank " + std::to_string(rank) + " has TORII_TRANSPORT '" + asked[rank] + "', rank 0 '" + asked[0] + "'",
        static_cast<int>(rank));
  }
  const bool forced = is_fabric(settings.transport);
  if (!forced && settings.transport != "auto" && settings.transport != "shared_memory") {
    std::string names = "auto, shared_memory";
    for (const Fabric& fabric : kFabrics) names += std::string(", ") + fabric.name;
    throw Error(Status::unsupported, "TORII_TRANSPORT is '" + settings.transport + "'; this build has: " + names);
  }
  auto nodes = std::make_unique<Nodes>(bootstrap, settings.node, forced ? Nodes::Rule::separate : Nodes::Rule::shared);
  if (settings.transport == "shared_memory") nodes->check_single();
  return nodes;
}

std::unique_ptr<Transport> open_transport(Bootstrap& bootstrap, const Settings& settings, const Nodes& nodes,
                                          shared_memory::Arena& arena, shared_memory::NodePeers& peers) {
  auto inside = std::make_unique<shared_memory::SharedMemory>(bootstrap, arena, peers, settings.engines,
                                                              settings.cross_memory, settings.hop);
  if (nodes.count() == 1 && !is_fabric(settings.transport)) return inside;
  transports::EngineOptions options;
  options.arena = arena.base();
  options.arena_bytes = arena.bytes();
  options.pinned_bytes = wanted_pinned_bytes(settings, nodes, arena);
  const auto extents = arena.extents_to_pin(options.pinned_bytes);
  options.extents = *extents;
  options.engines = settings.engines;
  options.provider = settings.provider;
  options.source_addresses = source_addresses(bootstrap, settings, nodes);
  options.named_interfaces = !settings.interfaces.empty();
  options.wait = settings.wait;
  options.oversubscribed = nodes.oversubscribed();
  options.alone_in_process = nodes.alone_in_process();
  options.timeout_s = settings.timeout_s;
  LifeWatch::Ranks ranks;
  for (int rank = 0; rank < nodes.ranks(); ++rank) {
    ranks.nodes.push_back(nodes.node(rank));
    ranks.processes.push_back(nodes.visible_pid(rank));
  }
  ranks.fabric_files = 2 * settings.engines;  // both ends may connect
  options.nodes = ranks.nodes;
  const std::vector<std::string>& addresses = options.source_addresses;
  auto lives = std::make_unique<LifeWatch>(bootstrap, ranks, addresses.empty() ? "" : addresses.front());
  options.lives = lives.get();
  auto between = open_fabric(bootstrap, settings, options);
  lives->watch_the_rest();
  auto pinning = pin(bootstrap, *between, arena, options.extents);
  return std::make_unique<mixed::Mixed>(nodes, std::move(inside), std::move(between), std::move(lives),
                                        std::move(pinning));
}

}  // namespace torii
