// SPDX-License-Identifier: Apache-2.0
// The one symbol of the module, torii_libfabric_entry. Library and module are built together and never mixed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/exchange.hpp"
#include "runtime/transport.hpp"
#include "transports/common/module_file.hpp"
#include "transports/libfabric/options.hpp"

namespace torii::libfabric {

inline constexpr std::uint64_t kEntryVersion =
    1 + (sizeof(Options) << 8) + (sizeof(Put) << 24) + (sizeof(ProviderReport) << 40);

struct Entry {
  transports::EntryVersion version;
  Transport* (*make)(Exchange& exchange, const Options& options);
  std::vector<ProviderReport> (*list)(const std::vector<std::string>& source_addresses);
};

}  // namespace torii::libfabric
