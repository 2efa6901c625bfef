// SPDX-License-Identifier: Apache-2.0
// How long a rank sleeps: a millisecond beside mapped peers, longer and longer where only a network wakes it.
#include "runtime/waiting.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include <vector>

namespace torii {
namespace {

/// Sleeps as asked, and notes for how long that was.
class Sleeper final : public Transport {
 public:
  explicit Sleeper(const Capabilities& capabilities) : capabilities_(capabilities) {}
  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  int rank() const noexcept override { return 0; }
  int ranks() const noexcept override { return 2; }
  int node(int rank) const noexcept override { return rank; }
  std::byte* mapped(int, std::uint64_t) noexcept override { return nullptr; }
  Status put(const Put&) noexcept override { return Status::ok; }
  Status put_word(int, std::uint64_t, std::uint64_t) noexcept override { return Status::ok; }
  Status progress() noexcept override { return Status::ok; }
  bool drained() noexcept override { return true; }
  void sleep(int most_us, bool (*)(void*), void*) noexcept override {
    slept_us.push_back(most_us);
    const timespec time = {0, static_cast<long>(most_us) * 1000};
    nanosleep(&time, nullptr);
  }
  bool alive(int) noexcept override { return true; }
  bool oversubscribed() const noexcept override { return true; }

  std::vector<int> slept_us;

 private:
  Capabilities capabilities_;
};

/// Waits for at least that long without anything moving.
void wait_quietly(Waiting& waiting, int ms) {
  const std::int64_t end_ns = now_ns() + ms * std::int64_t{1'000'000};
  while (now_ns() < end_ns) {
    waiting.pause([](void*) { return true; }, nullptr);
  }
}

TEST(Waiting, SleepsAMillisecondBesideMappedPeers) {
  Sleeper sleeper({.name = "mapped", .mapped = true, .wakes_on_put = true});
  Waiting waiting(sleeper, WaitMode::sleep);
  wait_quietly(waiting, 60);
  ASSERT_GT(sleeper.slept_us.size(), 5U);
  for (const int us : sleeper.slept_us) EXPECT_EQ(us, 1000);
}

TEST(Waiting, OrWhereNothingWakesIt) {
  Sleeper sleeper({.name = "deaf", .wakes_on_put = false});
  Waiting waiting(sleeper, WaitMode::sleep);
  wait_quietly(waiting, 60);
  for (const int us : sleeper.slept_us) EXPECT_EQ(us, 1000);
}

TEST(Waiting, SleepsAnEighthOfTheQuietTimeWhereANetworkWakesIt) {
  Sleeper sleeper({.name = "network", .wakes_on_put = true});
  Waiting waiting(sleeper, WaitMode::sleep);
  wait_quietly(waiting, 1000);
  ASSERT_FALSE(sleeper.slept_us.empty());
  EXPECT_EQ(sleeper.slept_us.front(), 1000);
  for (const int us : sleeper.slept_us) {
    EXPECT_GE(us, 1000);
    EXPECT_LE(us, 100'000);
  }
  EXPECT_EQ(sleeper.slept_us.back(), 100'000);
  EXPECT_LT(sleeper.slept_us.size(), 120U) << "not the 600 of a millisecond each";
  waiting.moved();
  sleeper.slept_us.clear();
  wait_quietly(waiting, 2);
  ASSERT_FALSE(sleeper.slept_us.empty());
  EXPECT_EQ(sleeper.slept_us.front(), 1000) << "what moved may move again soon";
}

TEST(Waiting, PollsLittleWhereAPollIsASystemCallAndOthersWantTheCpu) {
  Sleeper sleeper({.name = "network", .wakes_on_put = true});
  Sleeper beside({.name = "mapped", .mapped = true, .wakes_on_put = true});
  const auto polls = [](Sleeper& transport) {
    Waiting waiting(transport, WaitMode::automatic);
    int count = 0;
    for (; transport.slept_us.empty(); ++count) waiting.pause([](void*) { return true; }, nullptr);
    return count;
  };
  EXPECT_LT(polls(sleeper), 32);
  EXPECT_GT(polls(beside), 200);
}

}  // namespace
}  // namespace torii
