// SPDX-License-Identifier: Apache-2.0
// A member that dies or is stopped while a team is founded by a number: the others end in time, and alike, and go on.
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "tests/support/places.hpp"
#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

struct FoundingReport {
  Outcome outcome;
  std::vector<std::string> first;  ///< how the first founding ended on those that had one: "status: text"
  std::vector<std::string> last;
  double latest_first_s = 0;
};

FoundingReport run_founding(int chosen, const std::string& what, const std::string& when, const std::string& timeout) {
  FoundingReport report;
  report.outcome = run({bin_dir() + "/torii-run", "-n", "3", "--timeout", "25", "--on-failure", "continue", "--",
                        helper("founding_rank"), std::to_string(chosen), what, when},
                       {"TORII_TIMEOUT=" + timeout});
  const std::string& output = report.outcome.output;
  const std::regex line("rank [0-9]+ after ([0-9.]+) s: (first|last): ([^\n]*)");
  for (auto at = std::sregex_iterator(output.begin(), output.end(), line); at != std::sregex_iterator(); ++at) {
    ((*at)[2] == "first" ? report.first : report.last).push_back((*at)[3]);
    if ((*at)[2] == "first") report.latest_first_s = std::max(report.latest_first_s, std::stod((*at)[1]));
  }
  return report;
}

/// The number of a rank in the team of 2, 0, 1.
std::string member_of(int rank) { return std::to_string(rank == 2 ? 0 : rank + 1); }

/// The opener of the founding is rank 0.
TEST(FoundingProcesses, NameAMemberThatDies) {
  for (const int chosen : {0, 1}) {
    for (const std::string when : {"before", "inside"}) {
      const FoundingReport report = run_founding(chosen, "dies", when, "20");
      SCOPED_TRACE("rank " + std::to_string(chosen) + " " + when + "\n" + report.outcome.output);
      ASSERT_EQ(report.first.size(), 2U);
      for (const std::string& end : report.first) {
        EXPECT_EQ(end.find("peer_lost: rank " + member_of(chosen) + " on host "), 0U) << end;
        EXPECT_EQ(end, report.first[0]);
      }
      EXPECT_LT(report.latest_first_s, 8);
      EXPECT_EQ(report.last, std::vector<std::string>(2, "ok: "));
    }
  }
}

TEST(FoundingProcesses, DoNotWaitForAMemberThatIsStopped) {
  for (const int chosen : {0, 1}) {
    for (const std::string when : {"before", "inside"}) {
      const FoundingReport report = run_founding(chosen, "stops", when, "1");
      SCOPED_TRACE("rank " + std::to_string(chosen) + " " + when + "\n" + report.outcome.output);
      ASSERT_EQ(report.first.size(), 3U);
      // A rank that is stopped inside learns why the founding has failed. The call of one that is stopped before it
      // belongs to the others' next one.
      int timeouts = 0;
      for (const std::string& end : report.first) {
        if (end == "ok: ") continue;
        EXPECT_EQ(end.find("timeout: no team of number 11 for 1000 ms"), 0U) << end;
        EXPECT_NE(end.find("rank " + member_of(chosen) + " on host "), std::string::npos) << end;
        ++timeouts;
      }
      EXPECT_EQ(timeouts, when == "inside" ? 3 : 2);
      EXPECT_EQ(report.last, std::vector<std::string>(3, "ok: "));
    }
  }
}

}  // namespace
}  // namespace torii::tests
