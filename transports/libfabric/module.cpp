// SPDX-License-Identifier: Apache-2.0
// Opens the module beside the library.
#include "transports/libfabric/module.hpp"

#include "transports/network/entry.hpp"

namespace torii::libfabric {
namespace {

constexpr const char* kName = "libfabric";

}  // namespace

std::unique_ptr<Transport> open(Bootstrap& bootstrap, const Options& options) {
  return transports::make_in_module(kName, bootstrap, options);
}

std::vector<ProviderReport> providers(const std::vector<std::string>& source_addresses) {
  return transports::list_in_module<Options>(kName, source_addresses);
}

}  // namespace torii::libfabric
