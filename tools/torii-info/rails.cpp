// SPDX-License-Identifier: Apache-2.0
// Calls the functions that the transports call, for one rank alone.
#include "tools/torii-info/rails.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace torii::tools {
namespace {

std::vector<Nic> nics_that_are_up(const std::vector<MachineNic>& nics, bool openfabrics_only) {
  std::vector<Nic> up;
  for (const MachineNic& one : nics) {
    if (one.is_up && (one.is_openfabrics || !openfabrics_only)) up.push_back(one.nic);
  }
  return up;
}

/// The result of engine_rails() for a rank that is alone.
std::vector<std::size_t> in_turn(const std::vector<Rail>& rails, int engines) {
  return engine_rails({{"", rails}}, 0, engines);
}

}  // namespace

std::vector<EngineRail> rails_over_ip(const std::vector<RailSource>& sources, const std::vector<MachineNic>& nics,
                                      const CpuList& allowed, bool named, int engines) {
  const std::vector<std::size_t> preferred = preferred_sources(sources, nics_that_are_up(nics, false), allowed, named);
  std::vector<Rail> rails;
  for (const std::size_t source : preferred) rails.push_back({sources[source].network, sources[source].address});
  std::vector<EngineRail> chosen;
  for (const std::size_t rail : in_turn(rails, engines)) {
    const RailSource& source = sources[preferred[rail]];
    chosen.push_back({static_cast<int>(chosen.size()), source.interface, source.address});
  }
  return chosen;
}

std::vector<EngineRail> rails_over_openfabrics(const std::vector<MachineNic>& nics, const CpuList& allowed,
                                               int engines) {
  const std::vector<Nic> up = nics_that_are_up(nics, true);
  std::vector<Rail> rails;
  for (const std::size_t nic : preferred_nics(up, allowed)) rails.push_back({"", up[nic].name});
  std::vector<EngineRail> chosen;
  for (const std::size_t rail : in_turn(rails, engines)) {
    chosen.push_back({static_cast<int>(chosen.size()), rails[rail].name, ""});
  }
  return chosen;
}

std::string cpus_text(const CpuList& cpus) {
  std::string text;
  for (std::size_t first = 0; first < cpus.size();) {
    std::size_t last = first;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cpus[first]);
    if (last != first) text += fmt::format("-{}", cpus[last]);
    first = last + 1;
  }
  return text;
}

std::string device_text(const MachineNic& device) {
  std::string text = device.nic.name + (device.is_openfabrics ? ": InfiniBand or its like, " : ": network interface, ");
  text += device.is_up ? "up" : "down";
  for (const std::string& address : device.addresses) text += ", " + address;
  text += device.nic.mbit_per_s > 0 ? fmt::format(", {:.0f} Mbit/s", device.nic.mbit_per_s) : ", speed not known";
  if (device.numa_nodes.size() == 1) text += fmt::format(", NUMA node {}", device.numa_nodes[0]);
  if (!device.nic.near_cpus.empty()) text += ", CPUs " + cpus_text(device.nic.near_cpus);
  return text;
}

std::string rails_text(const std::vector<EngineRail>& rails) {
  std::vector<std::string> places;
  std::vector<CpuList> engines;
  for (const EngineRail& rail : rails) {
    const std::string place = rail.device + (rail.device.empty() || rail.address.empty() ? "" : " ") + rail.address;
    const auto at = std::ranges::find(places, place) - places.begin();
    if (at == static_cast<std::ptrdiff_t>(places.size())) {
      places.push_back(place);
      engines.emplace_back();
    }
    engines[static_cast<std::size_t>(at)].push_back(rail.engine);
  }
  std::string text;
  for (std::size_t i = 0; i < places.size(); ++i) {
    text += fmt::format("{}engine{} {}: {}", i == 0 ? "" : "; ", engines[i].size() == 1 ? "" : "s",
                        cpus_text(engines[i]), places[i]);
  }
  return text;
}

}  // namespace torii::tools
