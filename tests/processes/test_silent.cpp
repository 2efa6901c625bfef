// SPDX-License-Identifier: Apache-2.0
// A rank that is in no call for a while holds up nobody but those who wait for it, and what a dead one has put hurts
// nobody, over each provider of this build.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/places.hpp"
#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

constexpr int kSilentMs = 2500;
/// A call that waits for the silent rank takes nearly all of that, and machines are busy.
constexpr double kLateBehindSilentMs = 1500;

struct Provider {
  std::string transport;
  std::string name;
};

void PrintTo(const Provider& provider, std::ostream* stream) { *stream << provider.transport << " " << provider.name; }

class Silent : public testing::TestWithParam<Provider> {
 protected:
  static void expect_nobody_waits(const std::string& mode, int ranks) {
    const Outcome outcome =
        run({bin_dir() + "/torii-run", "-n", std::to_string(ranks), "--timeout", "25", "--", helper("silent_rank"),
             mode, std::to_string(kSilentMs)},
            {"TORII_TRANSPORT=" + GetParam().transport, "TORII_PROVIDER=" + GetParam().name, "TORII_WAIT=yield"});
    ASSERT_EQ(outcome.code, 0) << outcome.output;
    const std::regex line("the longest [a-z]+ took ([0-9]+) ms");
    int told = 0;
    for (auto at = std::sregex_iterator(outcome.output.begin(), outcome.output.end(), line);
         at != std::sregex_iterator(); ++at, ++told) {
      EXPECT_LT(std::stod((*at)[1]), kLateBehindSilentMs) << outcome.output;
    }
    EXPECT_EQ(told, ranks - 1) << outcome.output;
  }
};

TEST_P(Silent, OneThatOthersAskAboutBetweenTheirCalls) { expect_nobody_waits("probed", 3); }

TEST_P(Silent, OneToWhichAnotherTeamHasMuchUnderWay) { expect_nobody_waits("beside", 2); }

/// What a member that has died without a last word has put may come at any time; one that has gone in order has said
/// so.
TEST_P(Silent, TheMemoryOfATeamIsKeptWhereItsDeadMemberMayStillWrite) {
  for (const bool dies : {true, false}) {
    const Outcome outcome =
        run({bin_dir() + "/torii-run", "-n", "3", "--timeout", "25", "--on-failure", "continue", "--",
             helper("silent_rank"), dies ? "dies" : "aborts", dies ? "3200" : "800"},
            {"TORII_TRANSPORT=" + GetParam().transport, "TORII_PROVIDER=" + GetParam().name, "TORII_WAIT=yield"});
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_EQ(count_of(outcome.output, "the place of the team is kept"), dies ? 2 : 0) << outcome.output;
    EXPECT_EQ(count_of(outcome.output, "the place of the team is used"), dies ? 0 : 3) << outcome.output;
  }
}

std::vector<Provider> providers() {
  std::vector<Provider> all;
#ifdef TORII_TEST_LIBFABRIC
  all.insert(all.end(), {{"libfabric", "tcp;ofi_rxm"}, {"libfabric", "net"}});
#endif
#ifdef TORII_TEST_UCX
  all.push_back({"ucx", "tcp"});
#endif
  return all;
}

std::string provider_name(const testing::TestParamInfo<Provider>& info) {
  std::string name = info.param.transport + "_" + info.param.name;
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, Silent, testing::ValuesIn(providers()), provider_name);

}  // namespace
}  // namespace torii::tests
