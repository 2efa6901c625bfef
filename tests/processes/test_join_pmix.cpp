// SPDX-License-Identifier: Apache-2.0
// Joining through a PMIx server: that of Open MPI's mpirun, where it is installed.
#include <gtest/gtest.h>

#include "tests/processes/join_job.hpp"
#include "tests/support/places.hpp"

namespace torii::tests {
namespace {

#ifdef TORII_TEST_MPIRUN
constexpr const char* kMpirun = TORII_TEST_MPIRUN;
#else
constexpr const char* kMpirun = nullptr;
#endif
#ifdef __SANITIZE_THREAD__
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

class JoinPmix : public testing::Test {
 protected:
  void SetUp() override {
    if (kMpirun == nullptr) GTEST_SKIP() << "this build has no libpmix, or no mpirun.openmpi was found";
    if (kThreadSanitizer) GTEST_SKIP() << "libpmix has threads that the thread sanitizer cannot see into";
  }
  /// What libpmix leaves behind is not ours to report. Under a sanitizer it is the sanitizer that opens modules, and it
  /// does not know the run path of the program.
  static Words sanitized() { return {"ASAN_OPTIONS=detect_leaks=0", "LD_LIBRARY_PATH=" + bin_dir() + "/../lib/torii"}; }
  static Outcome mpirun(int ranks, const Words& arguments, const Words& environment = {}) {
    const Words command{kMpirun, "--allow-run-as-root", "--oversubscribe",
                        "-n",    std::to_string(ranks), helper("join_rank")};
    return run(command + arguments, sanitized() + environment);
  }
};

TEST_F(JoinPmix, RanksOfMpirunGatherAndMap) {
  for (const int ranks : {2, 5, 9}) {
    const Outcome gathered = mpirun(ranks, {"gather"});
    EXPECT_EQ(gathered.code, 0) << gathered.output;
    EXPECT_EQ(count_of(gathered.output, "gathered " + std::to_string(ranks)), ranks) << gathered.output;
  }
  const Outcome mapped = mpirun(3, {"peers"});
  EXPECT_EQ(mapped.code, 0) << mapped.output;
  EXPECT_EQ(count_of(mapped.output, "mapped arenas"), 3) << mapped.output;
}

TEST_F(JoinPmix, AProcessMayJoinAgain) {
  const Outcome outcome = mpirun(3, {"twice"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(count_of(outcome.output, "gathered 3"), 6) << outcome.output;
}

/// Every rank ends by itself: an mpirun of Open MPI 4.1 that kills a rank while others leave locks itself up about once
/// in 100 runs (its PMIx server waits for a lock that it holds), and then nothing could be said about the ranks.
TEST_F(JoinPmix, AMissingRankIsNamed) {
  const Outcome outcome = mpirun(3, {"later", "1"}, {"TORII_TIMEOUT=1", "OMPI_MCA_orte_abort_on_non_zero_status=0"});
  EXPECT_EQ(count_of(outcome.output, "error 6 about rank 1: rank 1 has not joined in time"), 2) << outcome.output;
  EXPECT_EQ(count_of(outcome.output, "error 7 about rank -1: a rank ended before all had exchanged"), 1)
      << outcome.output;
  EXPECT_LT(outcome.seconds, 20);
}

TEST_F(JoinPmix, PartsOfDifferentSizeAreAMismatch) {
  const Outcome outcome = mpirun(3, {"unequal", "1"});
  EXPECT_GE(count_of(outcome.output, "error 3 about rank "), 1) << outcome.output;
}

TEST_F(JoinPmix, AServerThatIsNotThereIsAnError) {
  const Outcome outcome =
      run({helper("join_rank"), "gather"},
          sanitized() + Words{"PMIX_RANK=0", "PMIX_NAMESPACE=gone", "PMIX_SERVER_URI2=gone.0;tcp4://127.0.0.1:9"});
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "a PMIx launcher has started this rank (PMIX_RANK is set), but PMIx_Init"))
      << outcome.output;
}

TEST_F(JoinPmix, AModuleThatCannotBeOpenedIsAnError) {
  const std::string module = bin_dir() + "/../lib/torii/libtorii_pmix.so";
  if (run({"unshare", "-m", "true"}).code != 0) GTEST_SKIP() << "this user cannot hide a file by a mount";
  const Outcome outcome = run(
      {"unshare", "-m", "sh", "-c", "mount --bind /dev/null " + module + " && exec " + helper("join_rank") + " gather"},
      sanitized() + Words{"PMIX_RANK=0", "PMIX_NAMESPACE=any"});
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "error 4 about rank -1: a PMIx launcher has started this rank")) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "the module to join through it cannot be opened: ")) << outcome.output;
}

TEST_F(JoinPmix, RankAndWorldSizeBeatTheServer) {
  const int port = free_port();
  const Outcome outcome = run({kMpirun, "--allow-run-as-root", "--oversubscribe", "-n", "2", "sh", "-c",
                               "RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=2 exec " + helper("join_rank") + " address"},
                              sanitized() + meeting_at(port));
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(count_of(outcome.output, "reached from 127.0.0.1"), 2) << outcome.output;
}

}  // namespace
}  // namespace torii::tests
