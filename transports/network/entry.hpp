// SPDX-License-Identifier: Apache-2.0
// What a module offers to the library that opens it, by the options of its transport. Library and module are built
// together and never mixed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/bootstrap/bootstrap.hpp"
#include "runtime/execution/transport.hpp"
#include "transports/network/engine_options.hpp"
#include "transports/network/module_file.hpp"

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

/// Collective. The transport of the module `name`. Throws Error: unsupported when the module is not there, and whatever
/// the transport fails with, on all ranks.
template <class Options>
std::unique_ptr<Transport> make_in_module(const std::string& name, Bootstrap& bootstrap, const Options& options) {
  const void* const entry = open_module_together(bootstrap, name, Entry<Options>::kVersion);
  const KeptHandlers kept;
  return std::unique_ptr<Transport>(static_cast<const Entry<Options>*>(entry)->make(bootstrap, options));
}

/// What the module `name` knows of providers. Throws Error{unsupported} when it is not there.
template <class Options>
std::vector<ProviderReport> list_in_module(const std::string& name, const std::vector<std::string>& source_addresses) {
  const KeptHandlers kept;
  return static_cast<const Entry<Options>*>(open_module(name, Entry<Options>::kVersion))->list(source_addresses);
}

}  // namespace torii::transports
