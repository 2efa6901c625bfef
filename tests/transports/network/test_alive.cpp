// SPDX-License-Identifier: Apache-2.0
// A peer that no engine reaches any more counts as dead over fabrics that notice deaths, and may live over those that
// also lose living peers.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "runtime/bootstrap/bootstrap.hpp"
#include "runtime/bootstrap/life_watch.hpp"
#include "tests/support/thread_ranks.hpp"
#include "transports/network/engine_transport.hpp"

namespace torii::transports {
namespace {

/// Does nothing, and may have been told that the peer leaves.
struct StillEngine {
  bool has_farewell = false;

  static bool progress() noexcept { return false; }
  static bool may_sleep(int&) noexcept { return true; }
  static int wait_descriptor() noexcept { return -1; }
  static Status put(const Put&) noexcept { return Status::ok; }
  static Status put_word(int, std::uint64_t, std::uint64_t) noexcept { return Status::ok; }
  static bool drained() noexcept { return true; }
  static bool probe(int, std::int64_t) noexcept { return true; }
  static void doubt(int, std::int64_t) noexcept {}
  bool has_left(int) const noexcept { return has_farewell; }
  static void close() noexcept {}
};

class StillTransport final : public EngineTransport<StillEngine> {
 public:
  StillTransport(const Bootstrap& bootstrap, LifeWatch* lives, bool notices_deaths)
      : EngineTransport(bootstrap, options(lives)) {
    engines_.push_back(std::make_unique<StillEngine>());
    capabilities_ = {.name = "played", .notices_deaths = notices_deaths};
  }
  void cut() { peers_.cut(0, 1, "its link is down"); }
  void farewell() { engines_.front()->has_farewell = true; }

 private:
  static EngineOptions options(LifeWatch* lives) {
    EngineOptions made;
    made.engines = 1;
    made.lives = lives;
    return made;
  }
};

/// Rank 0 calls `look`, while rank 1 lives and when it has ended; both watch each other if `is_watched`.
void look_at_peer(bool is_watched, const std::function<void(Bootstrap&, LifeWatch&)>& look,
                  const std::function<void(LifeWatch&)>& look_at_end = {}) {
  tests::run_ranks_as_threads(2, [&](Bootstrap& bootstrap) {
    auto lives = std::make_unique<LifeWatch>(bootstrap, LifeWatch::Ranks{}, is_watched ? "127.0.0.1" : "");
    const int peer = 1 - bootstrap.rank();
    for (int time = 0; is_watched && time < 2000 && !lives->watches(peer); ++time) {
      (void)lives->has_ended(peer, now_ns());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(lives->watches(peer), is_watched);
    gather_values(bootstrap, 0);
    if (bootstrap.rank() == 0) look(bootstrap, *lives);
    gather_values(bootstrap, 0);
    if (bootstrap.rank() == 1) lives.reset();  // as the end of its process
    gather_values(bootstrap, 0);
    if (bootstrap.rank() == 0 && look_at_end) look_at_end(*lives);
    gather_values(bootstrap, 0);
  });
}

TEST(Alive, APeerThatNoEngineReachesIsDeadWhereFabricsNoticeDeaths) {
  look_at_peer(true, [](Bootstrap& bootstrap, LifeWatch& lives) {
    StillTransport transport(bootstrap, &lives, true);
    EXPECT_TRUE(transport.alive(1));
    transport.cut();
    EXPECT_FALSE(transport.alive(1));
  });
}

TEST(Alive, OverDevicesItLivesUntilItsProcessEnds) {
  std::unique_ptr<StillTransport> transport;
  look_at_peer(
      true,
      [&](Bootstrap& bootstrap, LifeWatch& lives) {
        transport = std::make_unique<StillTransport>(bootstrap, &lives, false);
        transport->cut();
        EXPECT_TRUE(transport->alive(1));
        EXPECT_TRUE(transport->alive(1));
        EXPECT_EQ(transport->failure_text(), "its link is down");
      },
      [&](LifeWatch&) {
        for (int time = 0; time < 5000 && transport->alive(1); ++time) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        EXPECT_FALSE(transport->alive(1));
      });
}

TEST(Alive, OneThatHasLeftIsDeadThere) {
  look_at_peer(true, [](Bootstrap& bootstrap, LifeWatch& lives) {
    StillTransport transport(bootstrap, &lives, false);
    transport.farewell();
    EXPECT_TRUE(transport.alive(1)) << "its last messages may come";
    transport.cut();
    EXPECT_FALSE(transport.alive(1));
  });
}

TEST(Alive, OneThatNobodyWatchesIsDeadThere) {
  look_at_peer(false, [](Bootstrap& bootstrap, LifeWatch& lives) {
    StillTransport transport(bootstrap, &lives, false);
    transport.cut();
    EXPECT_FALSE(transport.alive(1));
    StillTransport without(bootstrap, nullptr, false);
    without.cut();
    EXPECT_FALSE(without.alive(1));
  });
}

}  // namespace
}  // namespace torii::transports
