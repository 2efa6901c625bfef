// SPDX-License-Identifier: Apache-2.0
// Many ranks on few CPUs, with the limits that systems give: they meet, and their first calls are right. And many
// teams.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/devices/memory_limits.hpp"
#include "tests/support/places.hpp"
#include "tests/support/process.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

class ManyRanks : public testing::Test {
 protected:
  void SetUp() override {
    // With pages taken beforehand, 256 ranks take 34 MiB each.
    constexpr std::size_t kBytesOfARank = std::size_t{48} << 20;
    if (memory_left().bytes / kBytesOfARank < static_cast<std::size_t>(ranks_)) {
      GTEST_SKIP() << ranks_ << " ranks may need 48 MiB each, and " << (memory_left().bytes >> 20) << " MiB are left";
    }
  }

  /// With a soft limit that is too low for them, and `hard`.
  Outcome run_ranks(int hard, const std::string& arguments) const {
    const std::string limits = "ulimit -Sn 80; ulimit -Hn " + std::to_string(hard) + "; ";
    const std::string job = bin_dir() + "/torii-run --timeout 100 -n " + std::to_string(ranks_) + " -- ";
    return Process({"sh", "-c", limits + job + helper("many_rank") + arguments}).wait(110);
  }

  const int ranks_ = is_full() ? 256 : 64;
};

TEST_F(ManyRanks, AreRight) {
  const Outcome outcome = run_ranks(4096, "");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(outcome.output, "right on " + std::to_string(ranks_) + " ranks\n");
}

/// They send each other many more descriptors than such a user may have in flight.
TEST_F(ManyRanks, OfAnOrdinaryUserMeet) {
  const Outcome outcome = run_ranks(4096, " ordinary " + std::to_string(3 * ranks_ + 28));
  if (outcome.code == 77) GTEST_SKIP() << "no other user can be become here";
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(outcome.output, "right on " + std::to_string(ranks_) + " ranks\n");
}

/// The hard limit of the job is enough for torii-run, and not for its ranks.
TEST_F(ManyRanks, WithFewDescriptorsNameTheLimit) {
  const Outcome outcome = run_ranks(ranks_ + 30, "");
  EXPECT_EQ(outcome.code, 1) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "no_resource: rank ")) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, ": too many open files: this process may open " + std::to_string(ranks_ + 30) +
                                        ", and opens up to 2 for each of the " + std::to_string(ranks_ - 1) +
                                        " other ranks of its node while it joins; raise the limit (ulimit -n)"))
      << outcome.output;
}

/// A part's two channels have an outbox each. Each part has made a call on both.
TEST(ManyParts, Of2RanksLiveAtOnce) {
  const std::string ranks = is_full() ? "8" : "2";
  const Outcome outcome =
      Process({bin_dir() + "/torii-run", "--timeout", "200", "-n", ranks, "--", helper("parts_rank"), "10000"})
          .wait(220);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(outcome.output, "10000 parts are right\n");
}

}  // namespace
}  // namespace torii::tests
