// SPDX-License-Identifier: Apache-2.0
// Ranks are killed at random moments, and replaced: the job goes on with the right sums, also where the next one dies
// while the others are meeting the last one's new process.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/places.hpp"
#include "tests/support/process.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

void sleep_ms(double milliseconds) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds));
}

/// One job of `ranks` ranks, of which so many are killed one after the other.
void kill_and_replace(int ranks, int kills, const Seed& seed, const std::vector<std::string>& environment) {
  const std::string file = testing::TempDir() + "torii_test_over_" + std::to_string(getpid());
  std::filesystem::remove(file);
  Process job({bin_dir() + "/torii-run", "-n", std::to_string(ranks), "--timeout", "50", "--on-failure", "replace",
               "--replacements", std::to_string(kills), "--", helper("replaced_rank"), file},
              environment);
  std::mt19937_64 random(seed.value);
  std::uniform_real_distribution<double> pause_ms(0, 60);
  for (int kill = 0; kill < kills;) {
    sleep_ms(pause_ms(random));
    const std::vector<pid_t> children = ranks_of(job.pid());
    if (children.empty()) continue;
    const pid_t chosen = children[random() % children.size()];
    if (::kill(chosen, SIGKILL) == 0) ++kill;
    // A process that is dead and not yet replaced must not be counted twice.
    while (::kill(chosen, 0) == 0) sleep_ms(1);
  }
  std::ofstream(file) << "over";
  const Outcome outcome = job.wait(55);
  std::filesystem::remove(file);
  EXPECT_EQ(outcome.code, 0) << seed << "\n" << outcome.output;
  for (int rank = 0; rank < ranks; ++rank) {
    EXPECT_TRUE(holds(outcome.output, "rank " + std::to_string(rank) + " has the right sum")) << outcome.output;
  }
}

TEST(Replacing, GoesOnWithTheRightSums) {
  for (const Seed& seed : seeds_of("test_replacing/within_a_node", is_full() ? 100 : 3)) {
    SCOPED_TRACE(seed);
    kill_and_replace(3, 10, seed, {});
    if (HasFailure()) return;
  }
}

#ifdef TORII_TEST_LIBFABRIC
TEST(Replacing, GoesOnBetweenNodes) {
  for (const Seed& seed : seeds_of("test_replacing/between_nodes", is_full() ? 50 : 2)) {
    SCOPED_TRACE(seed);
    kill_and_replace(3, 4, seed, {"TORII_TRANSPORT=libfabric", "TORII_ENGINES=2"});
    if (HasFailure()) return;
  }
}
#endif

}  // namespace
}  // namespace torii::tests
