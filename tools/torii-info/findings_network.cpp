// SPDX-License-Identifier: Apache-2.0
// Examines interfaces and devices, tries ports, and lists the providers of each library. A new transport over an
// external library adds its row in look_at_fabrics().
#include "tools/torii-info/findings_network.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/base/status.hpp"
#include "runtime/devices/address.hpp"
#include "transports/libfabric/module.hpp"
#include "transports/ucx/module.hpp"

namespace torii::tools {
namespace {

/// More ports give no more information.
constexpr int kPortsMost = 64;

std::string network_text(const Interface& one) {
  const std::string network = network_of(one);
  const std::size_t slash = network.find('/');
  return one.name + " " + one.address.host() + (slash == std::string::npos ? "" : network.substr(slash));
}

InterfaceFindings look_at_interfaces(const Settings& settings) {
  InterfaceFindings found;
  found.selection = settings.interfaces;
  const std::vector<Interface> all = interfaces_of_host();
  for (const Interface& one : all) {
    const bool is_first = std::ranges::find(all, one.name, &Interface::name)->address.host() == one.address.host();
    if (is_first) found.names += (found.names.empty() ? "" : ", ") + one.name;
  }
  try {
    const std::vector<Interface> selected = rail_interfaces(settings.interfaces, all, "");
    for (const Interface& one : selected) found.selected.push_back(network_text(one));
    found.only_loopback = std::ranges::all_of(selected, [](const Interface& one) { return one.address.is_loopback(); });
  } catch (const Error& error) {
    found.error = error.what();
  }
  return found;
}

PortFindings look_at_ports(const Settings& settings) {
  PortFindings found;
  found.low = settings.port_low;
  found.high = settings.port_high;
  const std::vector<RailSource> sources = rail_sources(settings);
  if (sources.empty()) {
    found.error = "no interface is selected";
    return found;
  }
  found.address = sources[0].address;
  const Address address = Address::parse(found.address, 0);
  const int last = found.low == 0 ? 0 : std::min(found.high, found.low + kPortsMost - 1);
  for (int port = found.low; port <= last; ++port) {
    ++found.tried;
    try {
      const Descriptor listener = listen_on(address, {port, port}, 1);
      ++found.free;
    } catch (const Error& error) {
      found.error = error.what();
    }
  }
  if (found.free != 0) found.error.clear();
  return found;
}

FabricFindings look_at_fabric(const Settings& settings, const std::string& name, const std::string& package,
                              std::vector<transports::ProviderReport> (*list)(const std::vector<std::string>&)) {
  FabricFindings found;
  found.name = name;
  found.lift = "apt-get install " + package + ", and a torii that was built with it";
  try {
    std::vector<std::string> addresses;
    for (const RailSource& source : rail_sources(settings)) addresses.push_back(source.address);
    if (addresses.size() > 1) addresses.resize(1);
    for (const transports::ProviderReport& one : list(addresses)) {
      if (one.usable) {
        const auto place = one.chosen ? found.usable.begin() : found.usable.end();
        found.usable.insert(place, one.name);
      } else {
        found.refused.push_back(one.name + ": " + one.reason);
      }
    }
  } catch (const Error& error) {
    found.error = error.what();
  }
  return found;
}

std::vector<FabricFindings> look_at_fabrics(const Settings& settings) {
  return {look_at_fabric(settings, "libfabric", "libfabric-dev", &libfabric::providers),
          look_at_fabric(settings, "ucx", "libucx-dev", &ucx::providers)};
}

/// The reason why the module that joins through PMIx cannot be opened; empty if it can.
std::string pmix_error() {
  void* const module = dlopen("libtorii_pmix.so", RTLD_NOW | RTLD_LOCAL);
  if (module != nullptr) {
    dlclose(module);
    return {};
  }
  const char* const why = dlerror();
  return why == nullptr ? "it cannot be opened" : why;
}

}  // namespace

std::vector<RailSource> rail_sources(const Settings& settings) {
  std::vector<RailSource> sources;
  try {
    for (const Interface& one : rail_interfaces(settings.interfaces, interfaces_of_host(), "")) {
      sources.push_back({one.address.host(), network_of(one), one.name});
    }
  } catch (const Error&) {
    sources.clear();  // the check of the interfaces reports the reason
  }
  return sources;
}

void look_at_network(const Settings& settings, Findings& found) {
  found.interfaces = look_at_interfaces(settings);
  found.ports = look_at_ports(settings);
  found.nics = nics_of_machine();
  found.fabrics = look_at_fabrics(settings);
  found.pmix_error = pmix_error();
  const char* const server = std::getenv("PMIX_NAMESPACE");
  found.pmix_server = server == nullptr ? "" : server;
}

}  // namespace torii::tools
