// SPDX-License-Identifier: Apache-2.0
// Random histories of teams. Every call of every rank ends in time, with the right result or the same cause; a call
// that returns ok is never one that paired with another call of its peers.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/conformance/thread_team.hpp"
#include "tests/histories/driver.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

struct Group {
  const char* name;
  int ranks;
  const char* settings;
  std::uint64_t histories;
  std::size_t parts_most;
  bool causes_agree;
};

/// A seed means a history of its group: on other ranks it would be another one.
std::vector<Seed> history_seeds(const Group& group) {
  const std::string nodes = group.parts_most == 0 ? "several_nodes/" : "one_node/";
  return seeds_of("test_histories/" + nodes + group.name, group.histories * (is_full() ? 100 : 1));
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
  const std::vector<Seed> seeds = history_seeds(group);
  for (const Seed& seed : seeds) histories.push_back(faults::draw_calls(seed.value, job, group.parts_most));
  std::vector<std::unique_ptr<HistoryJob>> jobs;
  for (const History& history : histories) {
    jobs.push_back(std::make_unique<HistoryJob>(history));
    jobs.back()->causes_agree = group.causes_agree;
  }
  const std::string settings = std::string("ARENA=8G\nTIMEOUT=20\n") + group.settings;
  run_as_threads({group.ranks, settings, "", "", "", 0}, [&](torii_context* context, torii_team* team) {
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      SCOPED_TRACE(seeds[i]);
      Driver(*jobs[i], context, team).play();
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
const Group kNodes[] = {{"3", 3, "TRANSPORT=libfabric\nENGINES=2", 50, 0, false}};

std::string name_of(const ::testing::TestParamInfo<Group>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(OneNode, Histories, ::testing::ValuesIn(kShared), name_of);
INSTANTIATE_TEST_SUITE_P(SeveralNodes, Histories, ::testing::ValuesIn(kNodes), name_of);

}  // namespace
}  // namespace torii::tests
