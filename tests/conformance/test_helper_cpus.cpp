// SPDX-License-Identifier: Apache-2.0
// HELPER_CPUS: progress threads run where the setting says, and a list that cannot be is refused on all ranks.
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/conformance/numbered_operation.hpp"
#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

/// The CPUs that each progress thread of this process may use, as the kernel writes them.
std::vector<std::string> cpus_of_helpers() {
  std::vector<std::string> found;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name != "torii-helper") continue;
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("Cpus_allowed_list:\t")) found.push_back(line.substr(line.find('\t') + 1));
    }
  }
  return found;
}

int last_allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  int last = -1;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<unsigned>(cpu), &set)) last = cpu;
  }
  return last;
}

TEST(HelperCpus, AreWhereProgressThreadsRun) {
  const std::string cpu = std::to_string(last_allowed());
  run_as_threads(team_of(2, "HELPERS=2\nHELPER_CPUS=" + cpu), [&](torii_context*, torii_team* team) {
    EXPECT_EQ(torii_barrier(team), TORII_OK);
    const std::vector<std::string> found = cpus_of_helpers();
    EXPECT_EQ(found, std::vector<std::string>(4, cpu));
    Operation one(1000, torii_team_rank(team), 1);
    const torii_call call = one.call();
    torii_request* request = nullptr;
    EXPECT_EQ(torii_start(team, &call, &request), TORII_OK);
    EXPECT_EQ(torii_wait(&request), TORII_OK);
    EXPECT_TRUE(one.is_right(2, 1));
    EXPECT_EQ(torii_barrier(team), TORII_OK);
  });
}

TEST(HelperCpus, ThatCannotBeAreRefused) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"3-1", "it must be CPU numbers in ascending order"},
      {"0,0", "it must be CPU numbers in ascending order"},
      {"1000", "but this process may not run on CPU 1000"},
  };
  for (const auto& [list, reason] : cases) {
    torii_context_options options = {};
    options.size = sizeof(options);
    const std::string settings = "HELPERS=1\nHELPER_CPUS=" + list;
    options.settings = settings.c_str();
    options.ranks = 1;
    torii_context* context = nullptr;
    EXPECT_EQ(torii_context_create(&options, &context), TORII_INVALID_ARGUMENT) << list;
    EXPECT_NE(std::string(torii_last_error()).find(reason), std::string::npos) << torii_last_error();
  }
}

}  // namespace
}  // namespace torii::tests
