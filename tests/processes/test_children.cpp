// SPDX-License-Identifier: Apache-2.0
// Ranks that die while child processes of theirs live on, and ranks that become other programs: the others notice as
// if there were no children, and continue.
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "tests/processes/failure_job.hpp"

namespace torii::tests {
namespace {

using Words = std::vector<std::string>;

/// A little less than the children live.
constexpr double kChildrenLiveMs = 2500;

/// Rank 1 of 3 dies in a call, inside which its child is forked, or becomes another program.
void expect_noticed(const Words& children, const Words& environment, std::size_t count = 1000) {
  for (const std::string& child : children) {
    FailureJob job{
        .ranks = 3, .mode = "loop", .rank = 1, .delay_us = 100'000, .count = count, .environment = environment};
    job.environment.push_back("FAILURE_CHILD=" + child);
    const Report report = run_job(job);
    SCOPED_TRACE(child + "\n" + report.outcome.output);
    if (report.outcome.code == 77) GTEST_SKIP() << "this user may make no process namespace";
    expect_one_cause(report, 2, "peer_lost: rank 1 on host ");
    EXPECT_LT(report.latency_ms(), kChildrenLiveMs);
    // The others end well.
    EXPECT_EQ(count_of(report.outcome.output, "torii-run: rank "), child == "exec" ? 0 : 1);
  }
}

TEST(Children, HideNoDeathOnANode) { expect_noticed({"fork", "background", "exec"}, {}); }

/// A rank that has adopted memory and forked is no dead one, however long the others wait for it, until it dies.
TEST(Children, WithAdoptedMemoryNeitherHideADeathNorFeignOne) {
  const Report report =
      run_job({.ranks = 3, .mode = "absent", .rank = 1, .delay_us = 200'000, .environment = {"FAILURE_CHILD=adopts"}});
  expect_one_cause(report, 2, "peer_lost: rank 1 on host ");
  EXPECT_GT(report.latency_ms(), 0) << report.outcome.output;
  EXPECT_LT(report.latency_ms(), kChildrenLiveMs);
}

TEST(Children, HideNoDeathInAnotherProcessNamespace) {
  expect_noticed({"fork", "background"}, {"FAILURE_NAMESPACES=1"});
}

#ifdef TORII_TEST_LIBFABRIC
TEST(Children, HideNoDeathBehindLibfabric) {
  const Words apart = {"TORII_TEST_PER_NODE=1", "TORII_TRANSPORT=libfabric", "FAILURE_NAMESPACES=1"};
  expect_noticed({"fork", "background", "exec"}, apart);
  expect_noticed({"fork"}, apart, 2'000'000);
  expect_noticed({"fork"}, {"TORII_TEST_PER_NODE=1", "TORII_PROVIDER=net"});
}
#endif

#ifdef TORII_TEST_UCX
TEST(Children, HideNoDeathBehindUcx) {
  const Words apart = {"TORII_TEST_PER_NODE=1", "TORII_TRANSPORT=ucx", "TORII_PROVIDER=tcp", "FAILURE_NAMESPACES=1"};
  expect_noticed({"fork", "background"}, apart);
  // Messages are under way in both directions.
  expect_noticed({"fork", "fork"}, apart, 2'000'000);
}
#endif

}  // namespace
}  // namespace torii::tests
