// SPDX-License-Identifier: Apache-2.0
// Every scenario on every transport, ranks as threads, 1 to 4 engines.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <tuple>
#include <vector>

#include "tests/fabric/scenarios.hpp"
#include "tests/fabric/transports.hpp"
#include "tests/support/test_run.hpp"
#include "tests/support/thread_ranks.hpp"

namespace torii::tests {
namespace {

using Case = std::tuple<std::string, int, NamedScenario>;

std::string case_name(const testing::TestParamInfo<Case>& info) {
  std::string name = std::get<0>(info.param) + "_" + std::get<2>(info.param).name + "_" +
                     std::to_string(std::get<1>(info.param)) + "_engines";
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

class Transports : public testing::TestWithParam<Case> {};

void play(const std::string& name, int engines, const NamedScenario& scenario, std::uint64_t seed) {
  run_ranks_as_threads(3, [&](Bootstrap& bootstrap) {
    const auto opened = open_transport(name, bootstrap, engines);
    Stage stage(opened->transport(), opened->arena(), seed);
    scenario.play(stage);
    stage.meet();
    gather_values(bootstrap, 0);  // mappings of threads stay until all are done
  });
}

TEST_P(Transports, Plays) {
  const auto& [name, engines, scenario] = GetParam();
  if (const std::string why = obstacle(name); !why.empty()) GTEST_SKIP() << why;
  for (const Seed& seed : seeds_of("fabric_transports/" + scenario.name, 1)) {
    SCOPED_TRACE(seed);
    play(name, engines, scenario, seed.value);
  }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSlow = true;
#else
constexpr bool kIsSlow = false;
#endif

/// The thread sanitizer sees the same code of ours over one provider of each library; a full run has them all.
bool is_left_out(const std::string& name) {
#if defined(__SANITIZE_THREAD__)
  const bool is_variant = is_imposed(name) || name.find("puts") != std::string::npos ||
                          name.find("cma") != std::string::npos || name == "net" || name == "shm" ||
                          name == "ucx_posix";
  return is_variant && !is_full();
#else
  (void)name;
  return false;
#endif
}

/// One and four engines; every number with TORII_TEST_FULL; two where that takes long, and for imposed modes.
std::vector<Case> cases() {
  std::vector<Case> all;
  int transports = 0;
  for (const std::string& name : transport_names()) {
    if (is_left_out(name)) continue;
    ++transports;
    std::vector<int> engines = is_imposed(name) || kIsSlow ? std::vector<int>{2} : std::vector<int>{1, 4};
    if (is_full()) engines = {1, 2, 3, 4};
    for (const int count : engines) {
      for (const NamedScenario& scenario : scenarios()) {
        // With more engines there is more of all that a silent peer could use up.
        if (scenario.name == "silent_peer" && count != engines.front()) continue;
        // Sleeping takes a second. So one thread of each rank sleeps with few engines and two with many, or, on the
        // next transport, the other way round.
        if (engines.size() == 2 && scenario.name.ends_with("sleepers")) {
          const bool one_thread = scenario.name == "sleepers";
          if (one_thread == ((count == engines.front()) == (transports % 2 == 0))) continue;
        }
        all.emplace_back(name, count, scenario);
      }
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, Transports, testing::ValuesIn(cases()), case_name);

}  // namespace
}  // namespace torii::tests
