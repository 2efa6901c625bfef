// SPDX-License-Identifier: Apache-2.0
// Finds this host's devices and tells the other ranks.
#include "transports/libfabric/rails.hpp"

#include <algorithm>
#include <string_view>

#include "runtime/devices/nics.hpp"
#include "runtime/devices/rails.hpp"
#include "transports/network/rails.hpp"

namespace torii::libfabric {
namespace {

/// libfabric's name of a device is the system's name, or begins with it: "mlx5_0", "rdmap0s6-rdm".
bool is_named_after(std::string_view domain, std::string_view nic) {
  if (!domain.starts_with(nic)) return false;
  return domain.size() == nic.size() || domain[nic.size()] == '-' || domain[nic.size()] == ':';
}

}  // namespace

std::vector<std::size_t> agree_on_devices(Bootstrap& bootstrap, const std::vector<Info>& devices, int engines) {
  const std::vector<Nic> known = transports::nics_that_are_up();
  std::vector<Nic> nics;
  for (const Info& device : devices) {
    const std::string domain = device->domain_attr->name;
    const auto is_it = [&](const Nic& nic) { return is_named_after(domain, nic.name); };
    const auto found = std::ranges::find_if(known, is_it);
    nics.push_back(found == known.end() ? Nic{domain, {}, 0} : Nic{domain, found->near_cpus, found->mbit_per_s});
  }
  const std::vector<std::size_t> preferred = preferred_nics(nics, allowed_cpus());
  RankRails mine = transports::rails_of_host();
  for (const std::size_t nic : preferred) mine.rails.push_back({"", nics[nic].name});
  std::vector<std::size_t> chosen;
  for (const std::size_t rail : engine_rails(transports::gather_rails(bootstrap, mine), bootstrap.rank(), engines)) {
    chosen.push_back(preferred[rail]);
  }
  return chosen;
}

}  // namespace torii::libfabric
