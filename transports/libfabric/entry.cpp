// SPDX-License-Identifier: Apache-2.0
// The function that the library finds when it opens the module.
#include "transports/network/entry.hpp"
#include "transports/libfabric/fabric.hpp"
#include "transports/libfabric/providers.hpp"

namespace {

using Entry = torii::transports::Entry<torii::libfabric::Options>;

torii::Transport* make(torii::Bootstrap& bootstrap, const torii::libfabric::Options& options) {
  return new torii::libfabric::Fabric(bootstrap, options);
}

std::vector<torii::libfabric::ProviderReport> list(const std::vector<std::string>& source_addresses) {
  return torii::libfabric::list_providers({}, source_addresses);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const Entry torii_libfabric_entry = {{Entry::kVersion}, &make, &list};
