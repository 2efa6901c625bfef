// SPDX-License-Identifier: Apache-2.0
// The one symbol of the module, torii_ucx_entry.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/exchange.hpp"
#include "runtime/transport.hpp"
#include "transports/common/module_file.hpp"
#include "transports/ucx/options.hpp"

namespace torii::ucx {

inline constexpr std::uint64_t kEntryVersion =
    1 + (sizeof(Options) << 8) + (sizeof(Put) << 24) + (sizeof(ProviderReport) << 40);

struct Entry {
  transports::EntryVersion version;
  Transport* (*make)(Exchange& exchange, const Options& options);
  std::vector<ProviderReport> (*list)(const std::vector<std::string>& source_addresses);
};

}  // namespace torii::ucx
