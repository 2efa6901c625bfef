// SPDX-License-Identifier: Apache-2.0
// Prints the verdicts on the findings.
#include "tools/torii-info/doctor.hpp"

#include <fmt/format.h>

#include "tools/exit_codes.hpp"
#include "tools/torii-info/checks.hpp"

namespace torii::tools {

Report report_checks(int ranks, const std::vector<Check>& checks) {
  Report report;
  report.json = {{"ranks", ranks}, {"checks", Json::array()}};
  for (const Check& check : checks) {
    report.text += fmt::format("{:<16} {:<8} {}\n", check.name, name(check.state), check.found);
    if (!check.lift.empty()) report.text += fmt::format("{:<25} to lift it: {}\n", "", check.lift);
    report.json["checks"].push_back(
        {{"name", check.name}, {"state", name(check.state)}, {"found", check.found}, {"lift", check.lift}});
    if (check.state == State::blocked) report.code = kNotPossible;
  }
  report.json["possible"] = report.code == 0;
  report.text += report.code == 0 ? "shared_memory can work here\n" : "shared_memory cannot work here\n";
  return report;
}

Report doctor(int ranks) {
  const Findings found = find_out(ranks);
  return report_checks(found.ranks, judge(found));
}

}  // namespace torii::tools
