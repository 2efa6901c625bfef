// SPDX-License-Identifier: Apache-2.0
// The scenarios with ranks as processes, the death of one, and what a job leaves open to the network.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/fabric/scenarios.hpp"
#include "tests/fabric/transports.hpp"
#include "tests/support/places.hpp"
#include "tests/support/process.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

const std::string kToriiRun = bin_dir() + "/torii-run";

std::vector<std::string> command(int ranks, const std::string& transport, int engines, const std::string& scenario,
                                 std::uint64_t seed, const std::string& on_failure) {
  return {kToriiRun,
          "-n",
          std::to_string(ranks),
          "--timeout",
          "50",
          "--on-failure",
          on_failure,
          "--",
          helper("fabric_rank"),
          transport,
          std::to_string(engines),
          scenario,
          std::to_string(seed)};
}

class Processes : public testing::TestWithParam<std::string> {};

/// fabric_transports plays everything on every transport, with ranks as threads, and starting processes takes long. So
/// a transport here plays every third scenario in the short tests, each transport other ones than its predecessor:
/// there are eleven transports, so three or four of them play each scenario.
bool is_left_out(std::size_t scenario) {
  const std::vector<std::string> names = process_transport_names();
  const auto transport = std::ranges::find(names, testing::TestWithParam<std::string>::GetParam()) - names.begin();
  return (scenario + static_cast<std::size_t>(transport)) % 3 != 0 && !is_full();
}

TEST_P(Processes, PlayEveryScenario) {
  if (const std::string why = obstacle(GetParam()); !why.empty()) GTEST_SKIP() << why;
  for (std::size_t i = 0; i < scenarios().size(); ++i) {
    if (is_left_out(i)) continue;
    const NamedScenario& scenario = scenarios()[i];
    for (const Seed& seed : seeds_of("fabric_processes/" + scenario.name, 1)) {
      const Outcome outcome = Process(command(3, GetParam(), 2, scenario.name, seed.value, "end")).wait(60);
      EXPECT_EQ(outcome.code, 0) << seed << "\n" << outcome.output;
      EXPECT_EQ(count_of(outcome.output, "has played " + scenario.name), 3) << outcome.output;
    }
  }
}

TEST_P(Processes, NoticeTheDeathOfOne) {
  if (GetParam() == "shm") GTEST_SKIP() << "libfabric's shm notices no deaths, and leaves files behind";
  if (GetParam() == "verbs;ofi_rxm" || GetParam() == "ucx_rc") {
    GTEST_SKIP() << "devices give up a dead peer after many seconds; a context watches its process (LifeWatch)";
  }
  if (const std::string why = obstacle(GetParam()); !why.empty()) GTEST_SKIP() << why;
  for (const int engines : {1, 4}) {
    const Outcome outcome = Process(command(3, GetParam(), engines, "peer_dies", 1, "continue")).wait(60);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_EQ(count_of(outcome.output, "has played peer_dies"), 2) << outcome.output;
  }
}

std::string transport_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, Processes, testing::ValuesIn(process_transport_names()), transport_name);

}  // namespace
}  // namespace torii::tests
