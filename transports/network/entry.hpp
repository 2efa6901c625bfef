// SPDX-License-Identifier: Apache-2.0
// The functions that a module offers to the library, as a template over the options of its transport. Library and
// module come from one build.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/bootstrap/bootstrap.hpp"
#include "runtime/fabric/transport.hpp"
#include "transports/network/engine_options.hpp"
#include "transports/network/module_file.hpp"
#include "transports/network/together.hpp"

namespace torii::transports {

/// The one symbol of a module, torii_<name>_entry.
template <class Options>
struct Entry {
  static constexpr std::uint64_t kVersion =
      1 + (sizeof(Options) << 8) + (sizeof(Put) << 24) + (sizeof(ProviderReport) << 40);

  EntryVersion version;
  Transport* (*make)(Bootstrap& bootstrap, const Options& options);
  std::vector<ProviderReport> (*list)(const std::vector<std::string>& source_addresses);
};

/// Collective. The transport of the module `name`. Throws Error on all ranks: unsupported if the module is missing, and
/// the errors of the transport.
template <class Options>
std::unique_ptr<Transport> make_in_module(const std::string& name, Bootstrap& bootstrap, const Options& options) {
  const void* entry = nullptr;
  together(bootstrap, [&] { entry = open_module(name, Entry<Options>::kVersion); });
  const KeptHandlers kept;
  return std::unique_ptr<Transport>(static_cast<const Entry<Options>*>(entry)->make(bootstrap, options));
}

/// The module's report on providers. Throws Error{unsupported} if the module is missing.
template <class Options>
std::vector<ProviderReport> list_in_module(const std::string& name, const std::vector<std::string>& source_addresses) {
  const KeptHandlers kept;
  return static_cast<const Entry<Options>*>(open_module(name, Entry<Options>::kVersion))->list(source_addresses);
}

}  // namespace torii::transports
