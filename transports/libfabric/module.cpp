// SPDX-License-Identifier: Apache-2.0
// Opens the module beside the library.
#include "transports/libfabric/module.hpp"

#include "transports/common/module_file.hpp"
#include "transports/libfabric/entry.hpp"

namespace torii::libfabric {
namespace {

constexpr const char* kName = "libfabric";

}  // namespace

std::unique_ptr<Transport> open(Exchange& exchange, const Options& options) {
  const auto* const entry = static_cast<const Entry*>(transports::open_module_together(exchange, kName, kEntryVersion));
  const transports::KeptHandlers kept;
  return std::unique_ptr<Transport>(entry->make(exchange, options));
}

std::vector<ProviderReport> providers(const std::vector<std::string>& source_addresses) {
  const transports::KeptHandlers kept;
  return static_cast<const Entry*>(transports::open_module(kName, kEntryVersion))->list(source_addresses);
}

}  // namespace torii::libfabric
