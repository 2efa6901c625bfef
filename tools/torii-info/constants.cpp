// SPDX-License-Identifier: Apache-2.0
// Prints kTuned, a paragraph for each part of torii.
#include "tools/torii-info/constants.hpp"

#include <string_view>

#include "runtime/base/tuned_constants.hpp"

namespace torii::tools {

Report constants() {
  Report report;
  report.json["constants"] = Json::array();
  std::string_view part;
  for (const Tuned& one : kTuned) {
    const std::string_view its_part = one.name.substr(0, one.name.find('.'));
    if (its_part != part && !part.empty()) report.text += "\n";
    part = its_part;
    report.text += fmt::format("{:<32} {:>9} {:<10} {}\n{:>53} {}\n", one.name, one.value, one.unit, one.meaning,
                               "origin:", one.origin);
    report.json["constants"].push_back({{"name", one.name},
                                        {"value", one.value},
                                        {"unit", one.unit},
                                        {"meaning", one.meaning},
                                        {"origin", one.origin}});
  }
  return report;
}

}  // namespace torii::tools
