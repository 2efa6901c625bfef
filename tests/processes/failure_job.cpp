// SPDX-License-Identifier: Apache-2.0
// Starts failure_rank under torii-run and reads its lines.
#include "tests/processes/failure_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "tests/support/places.hpp"

namespace torii::tests {

Report run_job(const FailureJob& job) {
  Report report;
  report.outcome = run({bin_dir() + "/torii-run", "-n", std::to_string(job.ranks), "--timeout",
                        std::to_string(25 * patience()), "--on-failure", "continue", "--", helper("failure_rank"),
                        job.mode, std::to_string(job.rank), std::to_string(job.delay_us), std::to_string(job.count)},
                       job.environment);
  const std::string& output = report.outcome.output;
  std::smatch match;
  if (std::regex_search(output, match, std::regex("event at ([0-9.]+)"))) report.event_s = std::stod(match[1]);
  const std::regex line("rank ([0-9]+) at ([0-9.]+) got ([^\n]*)");
  for (auto at = std::sregex_iterator(output.begin(), output.end(), line); at != std::sregex_iterator(); ++at) {
    report.ranks.push_back((*at)[1]);
    report.latest_s = std::max(report.latest_s, std::stod((*at)[2]));
    report.causes.insert((*at)[3]);
  }
  for (std::size_t at = output.find("survivors work"); at != std::string::npos;
       at = output.find("survivors work", at + 1)) {
    ++report.survivors;
  }
  return report;
}

std::string cause_of(const Report& report) { return report.causes.empty() ? "" : *report.causes.begin(); }

/// Everyone who lives reported the same, and their new team worked.
void expect_one_cause(const Report& report, int survivors, const std::string& part) {
  EXPECT_EQ(report.ranks.size(), static_cast<std::size_t>(survivors)) << report.outcome.output;
  EXPECT_EQ(report.causes.size(), 1U) << report.outcome.output;
  EXPECT_NE(cause_of(report).find(part), std::string::npos) << report.outcome.output;
  EXPECT_EQ(report.survivors, survivors) << report.outcome.output;
}

}  // namespace torii::tests
