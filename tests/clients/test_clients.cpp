// SPDX-License-Identifier: Apache-2.0
// Runs the project's MPI programs with coll/torii under mpirun: random calls, rules of MPI, set-up.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "tests/clients/mpi_job.hpp"
#include "tests/support/places.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

Job fuzz(int ranks, int cases, std::uint64_t seed) {
  Job job;
  job.ranks = ranks;
  // tuned chooses by sizes of types that differ between ranks, and op/avx adds small integers with saturation.
  job.options = {"--mca", "coll", "^tuned", "--mca", "op", "^avx", "--mca", "coll_torii_verbose", "1"};
  job.command = {helper("differential_fuzz"), std::to_string(cases), std::to_string(seed)};
  job.deadline_s = is_full() ? 1500 : 60;
  return job;
}

/// Random calls, none of which differs. Returns the output.
std::string run_fuzz(const Job& job) {
  const Outcome outcome = mpirun(job);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("no difference"), std::string::npos) << outcome.output;
  return outcome.output;
}

void expect_every_operation(const std::string& output) {
  auto taken = counts(output, "taken");
  for (const std::string& operation : kOperations) {
    for (const std::string& form : {operation, "i" + operation, operation + "_init"}) {
      EXPECT_GT(taken[form], 0) << form << ": " << output;
    }
  }
}

TEST(Fuzz, NoByteDiffersFromOpenMpi) {
  for (const int ranks : is_full() ? std::vector<int>{2, 3, 4, 7} : std::vector<int>{3}) {
    for (const Seed& seed : seeds_of("clients_test/fuzz_" + std::to_string(ranks), 1)) {
      SCOPED_TRACE(seed);
      const std::string output = run_fuzz(fuzz(ranks, is_full() ? 20'000 : 150, seed.value));
      if (is_full()) expect_every_operation(output);  // 150 calls are too few for all of them
    }
  }
}

/// The seed is the same each time, so that every operation is drawn in every form.
TEST(Fuzz, EveryOperationIsTaken) { expect_every_operation(run_fuzz(fuzz(2, 500, 102))); }

/// Calls of one group go from the component below to torii while it is in use.
TEST(Fuzz, FirstCallsBelow) {
  Job job = fuzz(3, is_full() ? 2000 : 100, 11);
  job.delay = "20";
  const std::string output = run_fuzz(job);
  for (const char* side : {"taken", "left"}) {
    long blocking = 0;
    for (const char* name : {"allreduce", "allgather", "barrier", "bcast", "gatherv", "scatterv"}) {
      blocking += counts(output, side)[name];
    }
    EXPECT_GT(blocking, 0) << side << ": " << output;
  }
}

TEST(Fuzz, CanonicalAndForcedAlgorithmsToo) {
  if (!is_full()) GTEST_SKIP() << "longer than the short test has time for; TORII_TEST_FULL runs it";
  for (const Seed& seed : seeds_of("clients_test/forced", 1)) {
    SCOPED_TRACE(seed);
    for (const std::string algorithm : {"ring", "binomial", "recursive_doubling", "rabenseifner", "node"}) {
      SCOPED_TRACE(algorithm);
      Job job = fuzz(4, 2000, seed.value);
      add(job.options, {"--mca", "coll_torii_algorithm", algorithm});
      (void)run_fuzz(job);
    }
    Job job = fuzz(4, 2000, seed.value);
    add(job.options, {"--mca", "coll_torii_determinism", "canonical"});
    (void)run_fuzz(job);
  }
}

TEST(Fuzz, OverLibfabricToo) {
  if (!is_full()) GTEST_SKIP() << "longer than the short test has time for; TORII_TEST_FULL runs it";
  if (!std::filesystem::exists(components() + "/../libtorii_libfabric.so")) {
    GTEST_SKIP() << "this build has no transport libfabric";
  }
  for (const Seed& seed : seeds_of("clients_test/libfabric", 1)) {
    SCOPED_TRACE(seed);
    // Two nodes played on this machine, of one rank and of two.
    Job job = fuzz(1, 2000, seed.value);
    const Words command = job.command;
    job.options.insert(job.options.end(), {"-x", "TORII_NODE=a"});
    add(job.command, {":", "-n", "2", "-x", "TORII_NODE=b"});
    add(job.command, command);
    const Outcome outcome = mpirun(job);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_GT(counts(outcome.output, "taken")["allreduce"], 0) << outcome.output;
  }
}

/// The hashes that all_reduce_perf prints of sums over 8 leaves.
std::string hashes_in(const std::string& output) {
  std::string hashes;
  const std::string key = "\"hash\":\"";
  for (std::size_t at = output.find(key); at != std::string::npos; at = output.find(key, at + 1)) {
    hashes += output.substr(at + key.size(), 16) + ' ';
  }
  return hashes;
}

/// MPI has no such call, so a program makes it by the C interface; ranks join by PMIx.
TEST(Leaves, HaveOneHashUnderMpirun) {
  if (!std::filesystem::exists(build_dir() + "/bin/all_reduce_perf")) GTEST_SKIP() << "this build has no perf";
  if (!std::filesystem::exists(components() + "/../libtorii_pmix.so")) GTEST_SKIP() << "this build has no PMIx";
  const Words perf = {build_dir() + "/bin/all_reduce_perf",
                      "--leaves",
                      "8",
                      "-b",
                      "10000",
                      "-e",
                      "10000",
                      "-n",
                      "5",
                      "-d",
                      "f32,bf16,i32",
                      "--hash",
                      "--json",
                      "-"};
  const Outcome alone = Process(perf, {}).wait(60);
  const std::string expected = hashes_in(alone.output);
  EXPECT_EQ(expected.size(), 3 * 17u) << alone.output;
  for (const int ranks : {2, 3}) {
    const Outcome outcome = mpirun({.ranks = ranks, .options = {}, .command = perf, .with_torii = false});
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_EQ(hashes_in(outcome.output), expected) << ranks << " ranks: " << outcome.output;
  }
}

TEST(Semantics, GroupsRequestsAndThreads) {
  Words cases = {"absolute_addresses", "attributes", "derived_broadcasts",      "empty_calls", "idup", "messages_move",
                 "other_groups",       "persistent", "requests_outlive_groups", "threads",     "spawn"};
  if (is_full()) add(cases, {"far_places", "many_groups", "many_persistent"});
  for (const int ranks : is_full() ? std::vector<int>{2, 3, 4, 7} : std::vector<int>{2}) {
    Job job = {ranks, {}, {helper("mpi_semantics")}};
    add(job.command, cases);
    job.deadline_s = is_full() ? 600 : 60;
    const Outcome outcome = mpirun(job);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    for (const std::string& one : cases) {
      EXPECT_NE(outcome.output.find(one + ": ok"), std::string::npos) << outcome.output;
    }
  }
}

/// Before a group has a team. Calls of a group that is used seldom must not be slower.
TEST(Delay, CallsAreLeftWithinSixtyInstructions) {
  Job job = {2, {}, {helper("mpi_leaving")}};
  job.delay = "1000";
  const Outcome outcome = mpirun(job);
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  if (outcome.output.find("not possible") != std::string::npos) GTEST_SKIP() << outcome.output;
  for (const char* const name : {"bcast", "reduce", "allreduce", "allgather"}) {
    std::smatch found;
    ASSERT_TRUE(std::regex_search(outcome.output, found, std::regex("(^|\n)" + std::string(name) + " ([0-9]+)\n")));
    EXPECT_GT(std::stoi(found[2]), 5) << name << ": " << outcome.output;
    EXPECT_LE(std::stoi(found[2]), 60) << name << ": " << outcome.output;
  }
}

/// A group may get the id of an older one that is alive on a rank which is no member of the new one.
TEST(Semantics, IdsAreUsedAgain) {
  for (const int ranks : is_full() ? std::vector<int>{3, 4, 7} : std::vector<int>{3}) {
    const Outcome outcome =
        mpirun({ranks, {"--mca", "coll_torii_verbose", "1"}, {helper("mpi_semantics"), "reused_ids"}});
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_NE(outcome.output.find("reused_ids: ok"), std::string::npos) << outcome.output;
    // Both groups of each round have a team for blocking and one for non-blocking operations.
    EXPECT_NE(outcome.output.find("set-up: 160 teams"), std::string::npos) << outcome.output;
  }
}

TEST(Semantics, ThousandsOfGroupsAreAliveAtOnce) {
  Job job = {2, {"--mca", "coll_torii_verbose", "1"}, {helper("mpi_semantics"), "thousands_alive"}};
  job.deadline_s = 110;
  const Outcome outcome = mpirun(job);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("thousands_alive: ok"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("set-up: 4001 teams"), std::string::npos) << outcome.output;
}

/// A group without non-blocking operations has no team for them, whatever the delay is.
TEST(Semantics, TeamsForNonBlockingOperationsAreMadeWhenThereIsOne) {
  const Outcome none = mpirun({2, {"--mca", "coll_torii_verbose", "1"}, {helper("mpi_semantics"), "attributes"}});
  EXPECT_EQ(none.code, 0) << none.output;
  EXPECT_NE(none.output.find("set-up: 2 teams"), std::string::npos) << none.output;
}

/// The first calls of a group are left, and all ranks leave the same ones.
TEST(Semantics, TeamsAreMadeWhenTheyPay) {
  for (const int ranks : is_full() ? std::vector<int>{2, 3, 4, 7} : std::vector<int>{2, 3}) {
    Job job = {ranks, {"--mca", "coll_torii_verbose", "1"}, {helper("mpi_semantics"), "delayed_teams"}};
    job.delay = "4";
    const Outcome outcome = mpirun(job);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    auto taken = ranges(outcome.output, "taken"), left = ranges(outcome.output, "left");
    const std::map<std::string, std::pair<long, long>> wanted = {
        {"exscan", {3, 8}},      {"scatter", {1, 4}}, {"alltoall", {1, 1}}, {"iscan", {2, 5}},
        {"reduce_init", {3, 0}}, {"gather", {0, 1}},  {"scan", {6, 12}}};
    for (const auto& [name, numbers] : wanted) {
      EXPECT_EQ(taken[name], (Range{numbers.first, numbers.first})) << name << ": " << outcome.output;
      EXPECT_EQ(left[name], (Range{numbers.second, numbers.second})) << name << ": " << outcome.output;
    }
    // Each call that is left has a reason, and here it is always the same.
    EXPECT_EQ(left["scan"], ranges(outcome.output, "left, before the team:")["scan"]) << outcome.output;
    EXPECT_EQ(outcome.output.find("left, no team"), std::string::npos) << outcome.output;
    EXPECT_FALSE(std::regex_search(outcome.output, std::regex("left, [^\n]*=0\\b"))) << outcome.output;
    EXPECT_TRUE(std::regex_search(outcome.output, std::regex("set-up: [1-9][0-9]* teams in [1-9][0-9]* us, "
                                                             "the context in [1-9][0-9]* us")))
        << outcome.output;
  }
}

TEST(Semantics, ProgramsRunWithADelayToo) {
  Job job = {2,
             {"--mca", "coll_torii_verbose", "1"},
             {helper("mpi_semantics"), "attributes", "derived_broadcasts", "empty_calls", "messages_move",
              "other_groups", "persistent", "threads", "spawn"}};
  job.delay = "50";
  const Outcome outcome = mpirun(job);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("spawn: ok"), std::string::npos) << outcome.output;
  auto taken = ranges(outcome.output, "taken"), left = ranges(outcome.output, "left");
  for (auto* const side : {&taken, &left}) {
    for (const auto& [name, range] : *side) EXPECT_EQ(range.least, range.most) << name << ": " << outcome.output;
    EXPECT_GT((*side)["allreduce"].least, 0) << outcome.output;
  }
}

TEST(Semantics, ARefusedCallLeavesNoRequest) {
  const Outcome outcome = mpirun({2, {}, {helper("mpi_semantics"), "refused_calls"}});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("refused_calls: ok"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("is poisoned"), std::string::npos) << outcome.output;
}

/// One allocation of the component fails on one rank, each in turn (every third one in a short run): whoever runs the
/// operations, nobody waits for ever.
TEST(Component, OneAllocationFailsOnOneRank) {
  bool has_failed = true;
  const int step = is_full() ? 1 : 3;
  int number = 0;
  while (has_failed && !::testing::Test::HasFailure()) {
    Job job = {2, {}, {helper("mpi_scarce")}};
    job.environment = {"LD_PRELOAD=" + helper("libscarce_malloc.so"),
                       "TORII_TEST_FAILS_AT=" + std::to_string(number += step)};
    job.deadline_s = 20;
    const Outcome outcome = mpirun(job);
    SCOPED_TRACE("allocation " + std::to_string(number) + ": " + outcome.output);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.output.find("a result is wrong"), std::string::npos);
    has_failed = outcome.output.find("an allocation has failed") != std::string::npos;
  }
  EXPECT_GT(number, 8) << "no allocation has failed";
}

TEST(Component, IsOffUnlessEnabledAndGoneWhenExcluded) {
  const Job off = {2, {"--mca", "coll_torii_verbose", "1"}, {helper("mpi_semantics"), "messages_move"}, {}, false};
  const Job gone = {2, {"--mca", "coll", "^torii", "--mca", "coll_torii_verbose", "1"}, off.command, {}, true};
  const Outcome left_out = mpirun(off), excluded = mpirun(gone);
  EXPECT_EQ(left_out.code, 0) << left_out.output;
  EXPECT_NE(left_out.output.find("coll/torii: left out: coll_torii_enable is 0"), std::string::npos) << left_out.output;
  EXPECT_EQ(left_out.output.find("taken"), std::string::npos) << left_out.output;
  EXPECT_EQ(excluded.code, 0) << excluded.output;
  EXPECT_EQ(excluded.output.find("torii"), std::string::npos) << excluded.output;
}

TEST(Component, RanksThatDifferLeaveItOut) {
  const std::string command = helper("mpi_semantics");
  // The second application of the job has a parameter of its own.
  Words second = {"-n", "1", "-x", "OMPI_MCA_coll_torii_determinism=canonical", command, "messages_move"};
  Job job = {
      1, {"--mca", "coll_torii_verbose", "1", "--mca", "coll_torii_priority", "80"}, {command, "messages_move", ":"}};
  job.with_torii = false;
  job.environment = {"OMPI_MCA_coll_torii_enable=1"};
  add(job.command, second);
  const Outcome outcome = mpirun(job);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("has no coll/torii of the same version and parameters"), std::string::npos)
      << outcome.output;
  EXPECT_EQ(outcome.output.find("taken"), std::string::npos) << outcome.output;
}

TEST(Component, AFailedSetUpLeavesTheJobToOthers) {
  const Words command = {helper("mpi_semantics"), "messages_move"};
  const Outcome bad_setting = mpirun({2, {"-x", "TORII_ENGINES=none"}, command});
  EXPECT_EQ(bad_setting.code, 0) << bad_setting.output;
  EXPECT_NE(bad_setting.output.find("left out of this job: no context (TORII_ENGINES is 'none'"), std::string::npos)
      << bad_setting.output;
  // Only one of the ranks fails: the other must not wait for it.
  Job uneven = {1, {"-x", "TORII_ENGINES=none"}, command};
  add(uneven.command, {":", "-n", "1", command[0], command[1]});
  const Outcome one_rank = mpirun(uneven);
  EXPECT_EQ(one_rank.code, 0) << one_rank.output;
  EXPECT_NE(one_rank.output.find("left out of this job: no context"), std::string::npos) << one_rank.output;
  const Outcome bad_name = mpirun({2, {"--mca", "coll_torii_algorithm", "fastest"}, command});
  EXPECT_EQ(bad_name.code, 0) << bad_name.output;
  EXPECT_NE(bad_name.output.find("algorithm is 'fastest'; it must be one of"), std::string::npos) << bad_name.output;
}

TEST(Component, ShowsItsParameters) {
  const Outcome outcome = Process({"ompi_info", "--param", "coll", "torii", "--level", "9"},
                                  {"OMPI_MCA_mca_base_component_path=" + components() + ":SYSTEM_DEFAULT"})
                              .wait();
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  for (const std::string name : {"enable", "priority", "verbose", "delay", "algorithm", "determinism", "topology"}) {
    EXPECT_NE(outcome.output.find("\"coll_torii_" + name + "\""), std::string::npos) << outcome.output;
  }
}

}  // namespace
}  // namespace torii::tests
