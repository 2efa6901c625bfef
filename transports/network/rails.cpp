// SPDX-License-Identifier: Apache-2.0
// Finds this host's networks and sends them to the other ranks.
#include "transports/network/rails.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <string_view>

#include "runtime/base/status.hpp"
#include "runtime/base/text_file.hpp"
#include "runtime/devices/address.hpp"
#include "runtime/devices/nics.hpp"
#include "runtime/devices/rails.hpp"

namespace torii::transports {
namespace {

/// Equal for ranks of one machine and network namespace.
std::string host_name() {
  struct stat space {};
  if (stat("/proc/self/ns/net", &space) != 0) space.st_ino = 0;
  return first_line("/proc/sys/kernel/random/boot_id") + "." + std::to_string(space.st_ino);
}

std::vector<RailSource> describe(const std::vector<std::string>& addresses) {
  std::vector<Interface> interfaces;
  try {
    interfaces = interfaces_of_host();
  } catch (const Error&) {
    interfaces.clear();  // every address then counts as a network of its own
  }
  std::vector<RailSource> sources;
  for (const std::string& address : addresses) {
    const auto is_it = [&](const Interface& one) { return one.address.host() == address; };
    const auto found = std::ranges::find_if(interfaces, is_it);
    if (found == interfaces.end()) {
      sources.push_back({address, address, ""});
    } else {
      sources.push_back({address, network_of(*found), found->name});
    }
  }
  return sources;
}

}  // namespace

std::vector<Nic> nics_that_are_up() {
  std::vector<Nic> nics;
  for (const MachineNic& one : nics_of_machine()) {
    if (one.is_up) nics.push_back(one.nic);
  }
  return nics;
}

std::vector<RankRails> gather_rails(Bootstrap& bootstrap, const RankRails& mine) {
  std::vector<RankRails> all;
  for (const std::string& text : gather_texts(bootstrap, rails_text(mine))) all.push_back(parse_rails(text));
  return all;
}

RankRails rails_of_host() { return {host_name(), {}}; }

std::vector<std::string> agree_on_sources(Bootstrap& bootstrap, const EngineOptions& options) {
  const std::vector<RailSource> sources = describe(options.source_addresses);
  RankRails mine = rails_of_host();
  // With one address there is no choice, so the machine's devices are not needed.
  const std::vector<Nic> nics = sources.size() > 1 ? nics_that_are_up() : std::vector<Nic>();
  for (const std::size_t source : preferred_sources(sources, nics, allowed_cpus(), options.named_interfaces)) {
    mine.rails.push_back({sources[source].network, sources[source].address});
  }
  const std::vector<std::size_t> rails = engine_rails(gather_rails(bootstrap, mine), bootstrap.rank(), options.engines);
  std::vector<std::string> chosen;
  for (const std::size_t rail : rails) chosen.push_back(mine.rails[rail].name);
  if (!rails.empty() || sources.empty()) return chosen;
  // No common network: routers may join the networks of the ranks. Peers reach the address that was offered first.
  const std::size_t known = options.named_interfaces ? sources.size() : 1;
  for (std::size_t engine = 0; engine < static_cast<std::size_t>(options.engines); ++engine) {
    chosen.push_back(sources[engine % known].address);
  }
  return chosen;
}

}  // namespace torii::transports
