// SPDX-License-Identifier: Apache-2.0
// Lists the providers of a library and agrees on those that all ranks can use.
#include "transports/network/providers.hpp"

#include <algorithm>
#include <cstddef>

#include "runtime/base/status.hpp"

namespace torii::transports {

std::vector<ProviderReport> list_providers(const KnownProviders& known, const ReportOn& report_on) {
  std::vector<std::string_view> names(known.preference.begin(), known.preference.end());
  names.insert(names.end(), known.by_name_only.begin(), known.by_name_only.end());
  std::vector<ProviderReport> reports = report_on(names);
  const auto by_name_only = reports.begin() + static_cast<std::ptrdiff_t>(known.preference.size());
  const auto chosen =
      std::find_if(reports.begin(), by_name_only, [](const ProviderReport& one) { return one.usable || one.fails; });
  if (chosen != by_name_only) chosen->chosen = true;
  for (auto one = by_name_only; one != reports.end(); ++one) {
    if (one->usable) one->reason = "only when asked for by name";
  }
  return reports;
}

std::vector<std::string> usable_providers(Bootstrap& bootstrap, const std::string& wanted, const KnownProviders& known,
                                          const ReportOn& report_on) {
  const std::vector<std::string> asked = gather_texts(bootstrap, wanted);
  for (std::size_t rank = 1; rank < asked.size(); ++rank) {
    if (asked[rank] == asked[0]) continue;
    throw Error(Status::mismatch,
                "rank " + std::to_string(rank) + " has TORII_PROVIDER '" + asked[rank] + "', rank 0 '" + asked[0] + "'",
                static_cast<int>(rank));
  }
  // Every rank says which providers it can use.
  const std::string_view name = wanted;
  const std::vector<ProviderReport> mine = report_on(wanted == "auto" ? known.preference : std::span(&name, 1));
  std::string text;
  for (const ProviderReport& one : mine) text += one.usable ? "y" : "n";
  const std::vector<std::string> all = gather_texts(bootstrap, text);
  const std::vector<std::string> reasons = gather_texts(bootstrap, mine.front().reason + ".");
  std::vector<std::string> usable;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const auto lacks = [i](const std::string& answers) { return answers[i] != 'y'; };
    const auto rank = std::find_if(all.begin(), all.end(), lacks) - all.begin();
    if (rank == static_cast<std::ptrdiff_t>(all.size())) {
      usable.push_back(mine[i].name);
      continue;
    }
    if (wanted == "auto") continue;
    throw Error(Status::unsupported,
                "rank " + std::to_string(rank) + " cannot use TORII_PROVIDER '" + wanted +
                    "': " + reasons[static_cast<std::size_t>(rank)] + " " + known.lister + " lists what there is",
                static_cast<int>(rank));
  }
  if (usable.empty()) throw Error(Status::unsupported, "no provider is usable on all ranks; torii-info says why");
  return usable;
}

std::string choose_provider(Bootstrap& bootstrap, const std::string& wanted, const KnownProviders& known,
                            const ReportOn& report_on) {
  return usable_providers(bootstrap, wanted, known, report_on).front();
}

}  // namespace torii::transports
