// SPDX-License-Identifier: Apache-2.0
// How many calls are timed in a block: the first ones, which map memory, do not count as long calls.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "perf/common/alternate.hpp"

namespace torii::perf {
namespace {

using namespace std::chrono_literals;

/// A call of this one rank. The first `slow_calls` take `more` longer.
class SlowAtFirst final : public Way {
 public:
  SlowAtFirst(torii_team* team, CallData& data, int slow_calls, std::chrono::milliseconds more)
      : Way(team, data), slow_calls_(slow_calls), more_(more) {}
  torii_status call() override {
    if (++made_ <= slow_calls_) std::this_thread::sleep_for(more_);
    return Way::call();
  }
  int made() const { return made_; }

 private:
  int slow_calls_;
  std::chrono::milliseconds more_;
  int made_ = 0;
};

class Alternate : public testing::Test {
 protected:
  static constexpr double kBlockNs = 5e6;

  Job job_{""};
  Meeting meeting_{job_};
  CallData data_{job_, Options{}, Memory::malloced, 64, TORII_F32, TORII_SUM};
};

TEST_F(Alternate, FirstCallsAreNotTimed) {
  SlowAtFirst way(job_.team(), data_, 5, 5ms);
  time_block(job_, meeting_, Timing::isolated, kBlockNs, way);
  EXPECT_GT(way.calls, 10) << "by a call of 5 ms it would be one";
  ASSERT_EQ(way.blocks_us.size(), 1u);
  EXPECT_LT(way.blocks_us[0], 5e3);
}

TEST_F(Alternate, ABlockInARowHasAsManyCalls) {
  SlowAtFirst way(job_.team(), data_, 0, 0ms);
  time_block(job_, meeting_, Timing::loop, kBlockNs, way);
  EXPECT_EQ(way.made(), 9 + way.calls);
  EXPECT_EQ(way.blocks_us.size(), 1u);
}

TEST_F(Alternate, CallsThatStayLongAreMadeAFewTimesOnly) {
  SlowAtFirst way(job_.team(), data_, 1000, 60ms);
  time_block(job_, meeting_, Timing::isolated, kBlockNs, way);
  EXPECT_EQ(way.calls, 1);
  EXPECT_LE(way.made(), 5) << "200 ms are four of them, and one is the block";
  const int before = way.made();
  time_block(job_, meeting_, Timing::isolated, kBlockNs, way);
  EXPECT_EQ(way.made(), before + 1) << "the second block has no calls before it";
  EXPECT_EQ(way.blocks_us.size(), 2u);
}

}  // namespace
}  // namespace torii::perf
