// SPDX-License-Identifier: Apache-2.0
// Listing the providers of a library, and agreeing on one.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/bootstrap/bootstrap.hpp"
#include "transports/network/engine_options.hpp"

namespace torii::transports {

/// The providers of a library that torii knows.
struct KnownProviders {
  std::span<const std::string_view> preference;    ///< what `auto` takes, in this order
  std::span<const std::string_view> by_name_only;  ///< what it never takes
  const char* lister;                              ///< the program that lists what there is
};

/// Reports on the named providers, in their order.
using ReportOn = std::function<std::vector<ProviderReport>(std::span<const std::string_view> names)>;

/// Reports on all that are known, and which of them `auto` would take here.
std::vector<ProviderReport> list_providers(const KnownProviders& known, const ReportOn& report_on);

/// Collective. The provider that all ranks can use: `wanted`, or for "auto" the first of the preference that is usable
/// everywhere. Throws Error: mismatch when ranks want different ones, unsupported with the rank that cannot, and why.
std::string choose_provider(Bootstrap& bootstrap, const std::string& wanted, const KnownProviders& known,
                            const ReportOn& report_on);

}  // namespace torii::transports
