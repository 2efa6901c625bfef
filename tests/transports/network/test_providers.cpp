// SPDX-License-Identifier: Apache-2.0
// How the providers of any library are listed and agreed on, and settings that hold while a library starts.
#include <gtest/gtest.h>

#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.hpp"
#include "tests/support/thread_ranks.hpp"
#include "transports/network/environment.hpp"
#include "transports/network/providers.hpp"

namespace torii::transports {
namespace {

constexpr std::string_view kPreference[] = {"fast", "common", "slow"};
constexpr std::string_view kByNameOnly[] = {"special", "odd"};
constexpr KnownProviders kKnown = {kPreference, kByNameOnly, "list_them"};

/// All are usable but the one that is named.
ReportOn all_but(std::string_view missing) {
  return [missing](std::span<const std::string_view> names) {
    std::vector<ProviderReport> reports;
    for (const std::string_view name : names) {
      ProviderReport& one = reports.emplace_back();
      one.name = name;
      one.usable = name != missing;
      if (!one.usable) one.reason = "it is not here";
    }
    return reports;
  };
}

TEST(ListProviders, TellsWhichOneIsChosenAndWhichAreNever) {
  const std::vector<ProviderReport> reports = list_providers(kKnown, all_but("fast"));
  ASSERT_EQ(reports.size(), 5U);
  for (const ProviderReport& one : reports) EXPECT_EQ(one.chosen, one.name == "common") << one.name;
  EXPECT_EQ(reports[0].reason, "it is not here");
  EXPECT_EQ(reports[2].reason, "");
  EXPECT_EQ(reports[3].reason, "only when asked for by name");
  EXPECT_EQ(list_providers(kKnown, all_but("odd"))[4].reason, "it is not here");
  EXPECT_TRUE(list_providers(kKnown, all_but("odd"))[0].chosen);
}

TEST(ListProviders, ChoosesNoneOfThoseThatAreTakenByNameOnly) {
  const auto special_alone = [](std::span<const std::string_view> names) {
    std::vector<ProviderReport> reports = all_but("")(names);
    for (ProviderReport& one : reports) one.usable = one.name == "special";
    return reports;
  };
  for (const ProviderReport& one : list_providers(kKnown, special_alone)) EXPECT_FALSE(one.chosen) << one.name;
}

TEST(ChooseProvider, TakesTheFirstThatAllRanksHave) {
  tests::run_ranks_as_threads(2, [](Bootstrap& bootstrap) {
    const ReportOn mine = all_but(bootstrap.rank() == 0 ? "fast" : "common");
    EXPECT_EQ(choose_provider(bootstrap, "auto", kKnown, mine), "slow");
    EXPECT_EQ(choose_provider(bootstrap, "odd", kKnown, mine), "odd");
    EXPECT_EQ(usable_providers(bootstrap, "auto", kKnown, mine), std::vector<std::string>{"slow"});
    EXPECT_EQ(usable_providers(bootstrap, "auto", kKnown, all_but("common")),
              (std::vector<std::string>{"fast", "slow"}));
    EXPECT_EQ(usable_providers(bootstrap, "odd", kKnown, mine), std::vector<std::string>{"odd"});
    try {
      (void)choose_provider(bootstrap, "common", kKnown, mine);
      ADD_FAILURE() << "rank 1 has no such provider";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::unsupported);
      EXPECT_STREQ(error.what(),
                   "rank 1 cannot use TORII_PROVIDER 'common': it is not here. list_them lists what there is");
    }
  });
}

TEST(EnvironmentMeanwhile, LeavesWhatTheUserHasSet) {
  setenv("TORII_TEST_OF_USER", "theirs", 1);
  unsetenv("TORII_TEST_OF_NOBODY");
  {
    const EnvironmentMeanwhile meanwhile({{"TORII_TEST_OF_USER", "ours"}, {"TORII_TEST_OF_NOBODY", "ours"}});
    EXPECT_STREQ(std::getenv("TORII_TEST_OF_USER"), "theirs");
    EXPECT_STREQ(std::getenv("TORII_TEST_OF_NOBODY"), "ours");
  }
  EXPECT_STREQ(std::getenv("TORII_TEST_OF_USER"), "theirs");
  EXPECT_EQ(std::getenv("TORII_TEST_OF_NOBODY"), nullptr);
}

}  // namespace
}  // namespace torii::transports
