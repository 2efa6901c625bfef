// SPDX-License-Identifier: Apache-2.0
// Lists the providers of a library and agrees on those that all ranks can use.
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
  std::span<const std::string_view> preference;    ///< the order in which `auto` tries them
  std::span<const std::string_view> by_name_only;  ///< `auto` never selects these
  const char* lister;                              ///< the program that lists the providers of the machine
};

/// Reports on the named providers, in their order.
using ReportOn = std::function<std::vector<ProviderReport>(std::span<const std::string_view> names)>;

/// Reports on all known providers, and which of them `auto` would select here.
std::vector<ProviderReport> list_providers(const KnownProviders& known, const ReportOn& report_on);

/// Collective. The providers that all ranks can use, in the order in which they are to be opened: `wanted` alone, or
/// for "auto" those of the preference. Throws Error: mismatch if ranks want different ones, unsupported with the rank
/// that cannot and the reason.
std::vector<std::string> usable_providers(Bootstrap& bootstrap, const std::string& wanted, const KnownProviders& known,
                                          const ReportOn& report_on);
/// Collective. The first of usable_providers().
std::string choose_provider(Bootstrap& bootstrap, const std::string& wanted, const KnownProviders& known,
                            const ReportOn& report_on);

}  // namespace torii::transports
