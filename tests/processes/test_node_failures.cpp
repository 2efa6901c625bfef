// SPDX-License-Identifier: Apache-2.0
// The failures of test_failures with ranks on several nodes, between which nothing is mapped: libfabric over the
// loopback interface, one rank or two per node.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/processes/failure_job.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

/// What is slow here are busy machines and sanitizers; times are asserted generously.
constexpr double kLateBetweenNodesMs = 8000;

FailureJob on_nodes(FailureJob job, int per_node) {
  job.environment.push_back("TORII_TEST_PER_NODE=" + std::to_string(per_node));
  return job;
}

void kill_at_random(const std::string& mode, const std::vector<Seed>& seeds) {
  const std::vector<std::string> algorithms = {"auto", "trinaryx3", "node", "ring", "recursive_doubling"};
  for (const Seed& seed : seeds) {
    if (testing::Test::HasFailure()) return;
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed.value);
    FailureJob job{.mode = mode};
    job.ranks = 3 + static_cast<int>(random() % 2);
    job.rank = static_cast<int>(random() % static_cast<unsigned>(job.ranks));
    job.delay_us = static_cast<int>(random() % 50'000);
    job.count = std::vector<std::size_t>{1, 1000, 100'000}[random() % 3];
    job.environment = {"TORII_ALGORITHM=" + algorithms[random() % algorithms.size()]};
    const Report report = run_job(on_nodes(job, 1 + static_cast<int>(seed.value % 2)));
    SCOPED_TRACE(job.environment[0] + ", rank " + std::to_string(job.rank) + " of " + std::to_string(job.ranks) +
                 " after " + std::to_string(job.delay_us) + " us, " + std::to_string(job.count) + " elements");
    expect_one_cause(report, job.ranks - 1, "peer_lost: rank " + std::to_string(job.rank) + " on host ");
    EXPECT_EQ(report.outcome.code, 0) << report.outcome.output;
    EXPECT_LT(report.latency_ms(), kLateBetweenNodesMs * patience()) << report.outcome.output;
  }
}

TEST(NodeFailures, ADeathAtARandomMomentIsOneCauseForAll) {
  kill_at_random("loop", seeds_of("test_node_failures/loop", is_full() ? 500 : 8));
}

TEST(NodeFailures, ADeathEndsEveryRequestInFlight) {
  kill_at_random("requests", seeds_of("test_node_failures/requests", is_full() ? 100 : 3));
}

TEST(NodeFailures, ADeathIsNoticedBySleepers) {
  const Report report =
      run_job(on_nodes({.mode = "absent", .rank = 1, .delay_us = 200'000, .environment = {"TORII_WAIT=sleep"}}, 2));
  expect_one_cause(report, 3, "peer_lost: rank 1 on host ");
  EXPECT_NE(cause_of(report).find("died during allreduce of 1000 x i64, op sum"), std::string::npos)
      << report.outcome.output;
}

TEST(NodeFailures, ADeathIsNoticedInBroadcastsFromAllRanks) {
  const Report report =
      run_job(on_nodes({.ranks = 3,
                        .mode = "roots",
                        .rank = 2,
                        .delay_us = 150'000,
                        .environment = {"TORII_ALGORITHM=binomial", "TORII_SEGMENT=512K", "TORII_SLOTS=24"}},
                       1));
  expect_one_cause(report, 2, "peer_lost: rank 2 on host ");
}

TEST(NodeFailures, AStoppedRankIsATimeoutForAll) {
  const Report report =
      run_job(on_nodes({.ranks = 4, .mode = "stall", .rank = 2, .environment = {"TORII_TIMEOUT=1"}}, 2));
  expect_one_cause(report, 4, "timeout: no progress for 1000 ms in allreduce of 1000 x i64, op sum on rank ");
  const std::string cause = cause_of(report);
  EXPECT_NE(cause.find("rank 2 on host "), std::string::npos) << cause;
  EXPECT_EQ(report.outcome.code, 0) << report.outcome.output;
}

TEST(NodeFailures, ARankThatNeverComesIsNamed) {
  for (const char* mode : {"late", "late_persistent"}) {
    const Report report = run_job(
        on_nodes({.ranks = 4, .mode = mode, .rank = 2, .delay_us = 2'600'000, .environment = {"TORII_TIMEOUT=2"}}, 2));
    expect_one_cause(report, 4, "timeout: no progress for 2000 ms in allreduce of 1000 x i64, op sum on rank ");
    const std::string cause = cause_of(report);
    // Ranks of other nodes whose line is late may be named beside it.
    EXPECT_NE(cause.find("rank 2 on host ", cause.find("; not come to the call: ")), std::string::npos) << cause;
  }
}

TEST(NodeFailures, AnAbortEndsAllCalls) {
  for (const int per_node : {1, 2}) {
    const Report report = run_job(on_nodes({.mode = "abort", .rank = 2}, per_node));
    expect_one_cause(report, 4, "aborted: aborted by rank 2: enough is enough");
    EXPECT_EQ(report.outcome.code, 0) << report.outcome.output;
    EXPECT_LT(report.latency_ms(), kLateBetweenNodesMs * patience());
  }
}

/// Two sites of two ranks, whose blocks go over two lanes: one of the streams between the sites breaks in
/// mid-operation.
TEST(NodeFailures, ALostStreamBetweenSitesIsOneCauseForAll) {
  const std::string tree = testing::TempDir() + "torii_test_sites_" + std::to_string(getpid());
  std::ofstream(tree) << "node s relay\nnode t relay\nnode a comm\nnode b comm\nnode c comm\nnode d comm\n"
                         "link a s 1GB/s 1GB/s 0us 0us full\nlink b s 1GB/s 1GB/s 0us 0us full\n"
                         "link c t 1GB/s 1GB/s 0us 0us full\nlink d t 1GB/s 1GB/s 0us 0us full\n"
                         "link s t 100MB/s 100MB/s 8ms 8ms full\n";
  int ended = 0;
  // A message is under way at that moment by chance only, so there are more rounds until one was.
  for (int round = 0; round < (is_full() ? 40 : 2) || (ended == 0 && round < 20); ++round) {
    FailureJob job{.mode = "cut", .rank = round % 4, .delay_us = 30'000 + 17'000 * round % 200'000, .count = 200'000};
    job.environment = {"TORII_TOPOLOGY=tree:" + tree, "TORII_ENGINES=1", "TORII_TIMEOUT=5"};
    const Report report = run_job(on_nodes(job, 1));
    const std::string& output = report.outcome.output;
    EXPECT_EQ(report.outcome.code, 0) << output;
    const std::size_t went_on = static_cast<std::size_t>(count_of(output, "went on"));
    // The two ends of the stream may each have lost the other.
    EXPECT_EQ(went_on + report.ranks.size(), 4U) << output;
    EXPECT_TRUE(went_on == 0 || report.ranks.empty()) << output;
    ended += went_on == 0 ? 1 : 0;
    for (const std::string& cause : report.causes) {
      EXPECT_TRUE(cause.starts_with("peer_lost: rank ") || cause.starts_with("timeout: no progress for 5000 ms"))
          << output;
    }
    if (went_on == 0) {
      EXPECT_LT(report.latency_ms(), 5000 + kLateBetweenNodesMs) << output;
    }
  }
  EXPECT_GT(ended, 0) << "no stream with a message under way was cut";
  std::remove(tree.c_str());
}

/// One of four engines is lost between two ranks that live, and all ranks go on. Returns in how many jobs the engine
/// was closed for that: always by everybody or nobody, since a provider may have made a new stream.
int lose_streams(const std::string& mode, const std::vector<std::string>& causes, int rounds) {
  std::vector<std::vector<std::string>> transports = {{"TORII_PROVIDER=tcp;ofi_rxm"}, {"TORII_PROVIDER=net"}};
#ifdef TORII_TEST_UCX
  transports.push_back({"TORII_TRANSPORT=ucx", "TORII_PROVIDER=tcp"});
#endif
  int closed = 0;
  for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
    FailureJob job{.mode = mode, .rank = round % 4, .delay_us = 30'000 + 17'000 * round % 200'000, .count = 200'000};
    job.environment = {"TORII_TIMEOUT=2", "TORII_LOG=warn"};
    std::ranges::copy(transports[static_cast<std::size_t>(round) % transports.size()],
                      std::back_inserter(job.environment));
    const Report report = run_job(on_nodes(job, round % 2 + 1));
    const std::string& output = report.outcome.output;
    SCOPED_TRACE(job.environment[2] + "\n" + output);
    EXPECT_EQ(report.outcome.code, 0);
    if (count_of(output, "went on") == 4 && report.ranks.empty()) continue;
    expect_one_cause(report, 4, "");
    EXPECT_TRUE(std::ranges::any_of(causes, [&](const auto& cause) { return cause_of(report).starts_with(cause); }));
    const int closings = count_of(output, "closing engine ");
    EXPECT_TRUE(closings == 0 || closings == 4);
    closed += closings / 4;
  }
  return closed;
}

constexpr const char* kQuiet = "timeout: no progress for 2000 ms";

TEST(NodeFailures, AnEngineWhoseStreamGoesDeadIsClosed) {
  const int rounds = is_full() ? 60 : 3;
  EXPECT_EQ(lose_streams("deafen", {kQuiet}, rounds), rounds);
}

TEST(NodeFailures, AnEngineWhoseStreamBreaksIsNamedAndClosed) {
  const std::string named =
      "transport: the transport failed during allreduce of 200000 x i64, op sum, noticed by rank ";
  EXPECT_GT(lose_streams("break", {kQuiet, named}, is_full() ? 60 : 3), 0);
}

TEST(NodeFailures, SurvivorsWithUnequalOptionsAreToldSo) {
  const Report report = run_job(on_nodes({.ranks = 3, .mode = "options", .rank = 2, .count = 1}, 1));
  EXPECT_EQ(report.outcome.code, 0) << report.outcome.output;
  EXPECT_NE(report.outcome.output.find("the options of the survivors' team differ between rank 0 and rank 2"),
            std::string::npos)
      << report.outcome.output;
}

TEST(NodeFailures, CallsThatDifferAreNamedOnAllRanks) {
  for (const char* mode : {"count", "root", "barrier", "nothing", "persistent"}) {
    const Report report = run_job(on_nodes({.ranks = 3, .mode = mode, .rank = 1}, 1));
    SCOPED_TRACE(mode);
    expect_one_cause(report, 3, "mismatch: calls differ: rank ");
    // A persistent operation differs where it is prepared and where it is started: whichever is noticed first is named.
    const bool is_named =
        cause_of(report).find("rank 1 calls ") != std::string::npos ||
        (mode == std::string("persistent") && cause_of(report).find("rank 1 prepares ") != std::string::npos);
    EXPECT_TRUE(is_named) << cause_of(report);
    EXPECT_EQ(report.outcome.code, 0) << report.outcome.output;
  }
}

TEST(NodeFailures, ACancelledThreadEndsAfterItsCall) {
  const Report report =
      run_job({.ranks = 2, .mode = "cancel", .delay_us = 300'000, .environment = {"TORII_TEST_PER_NODE=1"}});
  EXPECT_EQ(report.outcome.code, 0) << report.outcome.output;
  EXPECT_NE(report.outcome.output.find("cancelled after the call"), std::string::npos) << report.outcome.output;
}

}  // namespace
}  // namespace torii::tests
