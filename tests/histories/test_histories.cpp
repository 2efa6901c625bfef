// SPDX-License-Identifier: Apache-2.0
// Random histories of teams. Every call of every rank ends in time, with the right result or the same cause; a call
// that returns ok is never one that paired with another call of its peers. TORII_TEST_SEED=n plays the history of that
// seed alone.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/conformance/thread_team.hpp"
#include "tests/histories/player.hpp"

namespace torii::tests {
namespace {

struct Group {
  const char* name;
  int ranks;
  const char* settings;
  int histories;
  std::size_t parts_most;
  bool causes_agree;
  std::vector<std::uint64_t> found = {};  ///< seeds that once failed, beyond the short run
};

std::vector<std::uint64_t> seeds_of(const Group& group) {
  if (const char* const only = std::getenv("TORII_TEST_SEED"); only != nullptr) {
    return {std::strtoull(only, nullptr, 10)};
  }
  const int factor = std::getenv("TORII_TEST_FULL") != nullptr ? 100 : 1;
  std::vector<std::uint64_t> seeds;
  for (int i = 0; i < group.histories * factor; ++i) {
    seeds.push_back(static_cast<std::uint64_t>(group.ranks) * 1'000'000 + static_cast<std::uint64_t>(i));
  }
  seeds.insert(seeds.end(), group.found.begin(), group.found.end());
  return seeds;
}

class Histories : public ::testing::TestWithParam<Group> {};

TEST_P(Histories, EndWithTheRightResultOrTheSameCause) {
  const Group& group = GetParam();
  if (group.parts_most == 0 && std::getenv("TORII_TEST_MODULES") == nullptr) {
    GTEST_SKIP() << "several nodes need the libfabric module, which this build lacks";
  }
  std::vector<History> histories;
  faults::Job job;
  job.ranks = group.ranks;
  for (int rank = 0; rank < group.ranks; ++rank) job.nodes.push_back(group.parts_most == 0 ? rank : 0);
  for (const std::uint64_t seed : seeds_of(group)) {
    histories.push_back(faults::draw_calls(seed, job, group.parts_most));
  }
  std::vector<std::unique_ptr<Stage>> stages;
  for (const History& history : histories) {
    stages.push_back(std::make_unique<Stage>(history));
    stages.back()->causes_agree = group.causes_agree;
  }
  const std::string settings = std::string("ARENA=8G\nTIMEOUT=20\n") + group.settings;
  run_as_threads({group.ranks, settings, "", "", "", 0}, [&](torii_context* context, torii_team* team) {
    for (const auto& stage : stages) {
      Player(*stage, context, team).play();
      if (::testing::Test::HasFailure()) return;
    }
  });
}

const Group kShared[] = {{"2", 2, "", 50, 2, true},
                         {"3_yield", 3, "WAIT=yield", 50, 2, true},
                         {"4_one_channel", 4, "CHANNELS=1", 50, 2, true},
                         {"5_sleep", 5, "WAIT=sleep", 50, 2, true}};
// Between nodes a rank that differs in one team and waits there is not heard by members that wait in another team, so
// the other team may reach its deadline too. Hence there is one team.
// 3004162: two ranks waited for sends, and told nobody of the operation that they had prepared before.
const Group kNodes[] = {{"3", 3, "TRANSPORT=libfabric\nENGINES=2", 50, 0, false, {3'004'162}}};

std::string name_of(const ::testing::TestParamInfo<Group>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(OneNode, Histories, ::testing::ValuesIn(kShared), name_of);
INSTANTIATE_TEST_SUITE_P(SeveralNodes, Histories, ::testing::ValuesIn(kNodes), name_of);

}  // namespace
}  // namespace torii::tests
