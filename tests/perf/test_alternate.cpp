// SPDX-License-Identifier: Apache-2.0
// How many calls are timed in a block: the first ones, which map memory, do not count as long calls.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "perf/common/alternate.hpp"

namespace torii::perf {
namespace {

using namespace std::chrono_literals;

/// A call of this one rank. Calls number `first` to `last`, from 1, take `more` longer.
class SlowFromTo final : public Way {
 public:
  SlowFromTo(torii_team* team, CallData& data, int first, int last, std::chrono::milliseconds more)
      : Way(team, data), first_(first), last_(last), more_(more) {}
  torii_status call() override {
    ++made_;
    if (made_ >= first_ && made_ <= last_) std::this_thread::sleep_for(more_);
    return Way::call();
  }
  int made() const { return made_; }

 private:
  int first_, last_;
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
  SlowFromTo way(job_.team(), data_, 1, 5, 5ms);
  time_block(job_, meeting_, Timing::isolated, kBlockNs, way);
  EXPECT_GT(way.calls, 10) << "by a call of 5 ms it would be one";
  ASSERT_EQ(way.blocks_us.size(), 1u);
  EXPECT_LT(way.blocks_us[0], 5e3);
}

TEST_F(Alternate, OneSlowCallCountsInARowOnly) {
  constexpr int kInTheBlock = 12;
  SlowFromTo isolated(job_.team(), data_, kInTheBlock, kInTheBlock, 50ms);
  time_block(job_, meeting_, Timing::isolated, kBlockNs, isolated);
  ASSERT_GT(isolated.calls, 10);
  EXPECT_LT(isolated.blocks_us[0], 50e3 / isolated.calls) << "the median of its calls";
  SlowFromTo in_a_row(job_.team(), data_, kInTheBlock, kInTheBlock, 50ms);
  time_block(job_, meeting_, Timing::loop, kBlockNs, in_a_row);
  ASSERT_GT(in_a_row.calls, 10);
  EXPECT_GE(in_a_row.blocks_us[0], 50e3 / in_a_row.calls) << "the mean of its calls";
}

TEST_F(Alternate, CallsThatStayLongAreMadeAFewTimesOnly) {
  SlowFromTo way(job_.team(), data_, 1, 1000, 60ms);
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
