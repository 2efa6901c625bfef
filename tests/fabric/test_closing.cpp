// SPDX-License-Identifier: Apache-2.0
// How engines of libfabric are closed: when one stays open, and what a device still does for a closed engine.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/fabric/words.hpp"
#include "tests/fabric/imposed_modes.hpp"
#include "tests/fabric/open_over.hpp"
#include "tests/fabric/refusal.hpp"
#include "tests/support/thread_ranks.hpp"
#include "transports/libfabric/fabric.hpp"

namespace torii::libfabric {
namespace {

using tests::run_ranks_as_threads;

/// The layer ends the process if an engine is closed with an unread notice, or before a notice that is sent later.
TEST(Closing, KeepsAnEngineOpenIfPeersMaySend) {
  const auto by_name = [](int, Options& options) {
    options.provider = "verbs;ofi_rxm";
    options.source_addresses = {"127.0.0.1"};
    options.engines = 2;
  };
  const int before = tests::imposed_engines();
  const Api api = tests::impose(tests::named_verbs_modes());
  open_over(
      by_name, [](int, Fabric&, std::byte*) {}, api);
  EXPECT_EQ(tests::imposed_engines(), before);
  // Every rank closes an engine through which the other has sent, and goes on with the other one.
  open_over(
      by_name,
      [](int rank, Fabric& fabric, std::byte* arena) {
        for (int i = 0; i < 20; ++i) ASSERT_EQ(fabric.put_word(1 - rank, 64, 1), Status::ok);
        fabric.close_engines(1);
        ASSERT_EQ(fabric.put_word(1 - rank, 128, 7), Status::ok);
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        while (load_word(arena + 128) != 7 && std::chrono::steady_clock::now() < deadline) {
          ASSERT_EQ(fabric.progress(), Status::ok);
        }
        EXPECT_EQ(load_word(arena + 128), 7u);
        while (!fabric.drained()) ASSERT_EQ(fabric.progress(), Status::ok);
      },
      api);
  EXPECT_EQ(tests::imposed_engines(), before + 2);
}

TEST(Closing, KeepsAnEngineOpenIfAPeerStays) {
  const int before = tests::imposed_engines();
  const Api api = tests::impose(tests::named_verbs_modes());
  run_ranks_as_threads(2, [&](Bootstrap& bootstrap) {
    tests::SmallArena arena;
    Options options;
    arena.give_to(options);
    options.engines = 1;
    options.provider = "verbs;ofi_rxm";
    options.source_addresses = {"127.0.0.1"};
    auto fabric = std::make_unique<Fabric>(bootstrap, options, api);
    if (bootstrap.rank() == 0) fabric.reset();
    gather_values(bootstrap, 0);
    for (int i = 0; fabric != nullptr && i < 20; ++i) (void)fabric->put_word(0, 64, 1);
    fabric.reset();
    gather_values(bootstrap, 0);
  });
  EXPECT_EQ(tests::imposed_engines(), before + 2);
}

/// Two ranks with two engines, and with room for puts that fill the sockets below the layer.
class ClosedEngines : public testing::Test {
 protected:
  static constexpr std::size_t kArena = std::size_t{48} << 20;
  static constexpr std::size_t kSource = std::size_t{24} << 20;
  static constexpr std::size_t kSignal = 4096;

  struct Ranks {
    int rank;
    Fabric& fabric;
    std::byte* arena;
    Bootstrap& bootstrap;

    void meet() { gather_values(bootstrap, 0); }
    /// Puts 20 MiB through engine 1, which takes until the peer makes progress.
    Put long_put(const PutOwner& owner) {
      Put put;
      put.peer = 1 - rank;
      put.engine = 1;
      put.source = arena + kSource;
      put.bytes = std::size_t{20} << 20;
      put.signal_offset = kSignal;
      put.target_offset = kSignal + kLineBytes;
      put.signal = 5;
      put.owner = owner.count();
      return put;
    }
    void progress_until(const std::function<bool()>& is_over, int most_ms = 10'000) {
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(most_ms);
      while (!is_over() && std::chrono::steady_clock::now() < deadline) (void)fabric.progress();
    }
    void progress_for(int ms) {
      progress_until([] { return false; }, ms);
    }
  };

  static void open(const std::function<void(Options& options)>& change, const std::function<void(Ranks& ranks)>& play,
                   const tests::Modes& modes) {
    const Api api = tests::impose(modes);
    run_ranks_as_threads(2, [&](Bootstrap& bootstrap) {
      std::vector<std::byte> memory(kArena + 4096);
      void* aligned = memory.data();
      std::size_t room = memory.size();
      Options options;
      options.arena = static_cast<std::byte*>(std::align(4096, kArena, aligned, room));
      options.arena_bytes = kArena;
      options.provider = tests::provider_of(modes);
      options.source_addresses = {"127.0.0.1"};
      options.engines = 2;
      change(options);
      Fabric fabric(bootstrap, options, api);
      Ranks ranks{bootstrap.rank(), fabric, options.arena, bootstrap};
      play(ranks);
      ranks.meet();
    });
  }
};

/// Otherwise the peer's device would try for ever, and its put would never end.
TEST_F(ClosedEngines, StillTakeWhatPeersWrite) {
  std::atomic<bool> is_over = false;
  const auto play = [&](Ranks& ranks) {
    PutOwner owner;
    if (ranks.rank == 0) ranks.fabric.close_engines(2);
    ranks.meet();
    if (ranks.rank == 0) return ranks.progress_until([&] { return is_over.load(); });
    EXPECT_EQ(ranks.fabric.put(ranks.long_put(owner)), Status::ok);
    ranks.progress_for(100);
    ranks.fabric.close_engines(2);
    ranks.progress_until([&] { return owner.drained(); });
    EXPECT_TRUE(owner.drained());
    is_over = true;
  };
  open([](Options&) {}, play, tests::named_verbs_modes());
}

TEST_F(ClosedEngines, HoldPutsUntilTheDeviceHasThemDone) {
  for (int time = 0; time < 5; ++time) {
    const auto play = [](Ranks& ranks) {
      PutOwner owner;
      if (ranks.rank == 1) {
        ASSERT_EQ(ranks.fabric.put(ranks.long_put(owner)), Status::ok);
        ranks.progress_for(100);
        EXPECT_FALSE(owner.drained());
        std::atomic<bool> is_over = false;
        std::thread other([&] {
          while (!is_over) (void)ranks.fabric.progress();
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        ranks.fabric.close_engines(2);
        is_over = true;
        other.join();
        EXPECT_FALSE(owner.drained()) << "rank 0 has not taken it yet";
      }
      ranks.meet();
      if (ranks.rank == 0) ranks.progress_until([&] { return load_word(ranks.arena + kSignal) == 5; });
      if (ranks.rank == 1) ranks.progress_until([&] { return owner.drained(); });
      if (ranks.rank == 0) {
        EXPECT_EQ(load_word(ranks.arena + kSignal), 5U);
      }
      EXPECT_EQ(owner.status(), Status::ok);
    };
    open([](Options&) {}, play, tests::named_verbs_modes());
  }
}

/// As if the provider listened on TCP, which no provider that pins does. The engine stays open for want of a
/// descriptor.
TEST_F(ClosedEngines, LeaveTheArenaRegisteredForOthers) {
  const auto spin = [](Options& options) {
    options.wait = WaitMode::spin;
    options.alone_in_process = false;
  };
  const auto play = [](Ranks& ranks) {
    ranks.fabric.close_engines(2);
    ranks.meet();
    PutOwner owner;
    Put put = ranks.long_put(owner);
    put.engine = 0;
    put.bytes = 100'000;
    ASSERT_EQ(ranks.fabric.put(put), Status::ok);
    ranks.progress_until([&] { return load_word(ranks.arena + kSignal) == 5 && owner.drained(); });
    EXPECT_EQ(load_word(ranks.arena + kSignal), 5U);
    ranks.meet();
  };
  open(spin, play, tests::verbs_modes());
}

TEST_F(ClosedEngines, WakeWhoWaitsForTheEndOfAPut) {
  // While a put is under way, a quarter of the sleep is the longest step: more than the test allows, by far.
  constexpr int kSleepUs = 80'000'000;
  constexpr auto kMost = std::chrono::seconds(10);
  using Clock = std::chrono::steady_clock;
  const auto sleep = [](Options& options) { options.wait = WaitMode::sleep; };
  const auto play = [&](Ranks& ranks) {
    PutOwner owner;
    if (ranks.rank == 1) {
      ASSERT_EQ(ranks.fabric.put(ranks.long_put(owner)), Status::ok);
      ranks.progress_for(200);
      ranks.fabric.close_engines(2);
      EXPECT_FALSE(owner.drained());
    }
    ranks.meet();
    if (ranks.rank == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      ranks.progress_until([&] { return load_word(ranks.arena + kSignal) == 5; });
      ranks.progress_for(500);
      return;
    }
    std::atomic<bool> is_over = false;
    std::atomic<Clock::duration> drained = Clock::duration::max();
    std::thread other([&] {
      while (!is_over) {
        (void)ranks.fabric.progress();
        if (owner.drained() && drained.load() == Clock::duration::max()) drained = Clock::now().time_since_epoch();
      }
    });
    while (!owner.drained()) {
      ranks.fabric.sleep_once(
          kSleepUs, [](void* puts) { return !static_cast<PutOwner*>(puts)->drained(); }, &owner);
    }
    const Clock::duration woken = Clock::now().time_since_epoch();
    is_over = true;
    other.join();
    EXPECT_TRUE(drained.load() > woken || woken - drained.load() < kMost);
  };
  open(sleep, play, tests::named_verbs_modes());
}

/// To a peer that has not closed the engine.
TEST_F(ClosedEngines, StillShowWhatIsPinned) {
  constexpr std::size_t kPart = std::size_t{40} << 20;
  const auto small = [](Options& options) { options.extents = {{0, kPart}}; };
  const auto play = [](Ranks& ranks) {
    PutOwner owner;
    if (ranks.rank == 0) {
      ranks.fabric.close_engines(2);
      ranks.fabric.pin({kPart, kArena - kPart});
    }
    ranks.meet();
    if (ranks.rank == 1) {
      Put put = ranks.long_put(owner);
      put.bytes = 100'000;
      put.signal_offset = kPart;
      put.target_offset = kPart + kLineBytes;
      EXPECT_EQ(ranks.fabric.put(put), Status::ok);
      ranks.progress_until([&] { return owner.drained(); });
      EXPECT_TRUE(owner.drained());
      EXPECT_EQ(owner.status(), Status::ok);
      EXPECT_EQ(ranks.fabric.progress(), Status::ok) << ranks.fabric.failure_text();
    } else {
      ranks.progress_until([&] { return ranks.arena[kPart + kLineBytes] == std::byte{7}; }, 2000);
    }
    ranks.meet();
  };
  open(small, play, tests::named_verbs_modes());
}

TEST_F(ClosedEngines, RefuseAPutThatIsTooLongBeforeItWaits) {
  const auto play = [](Ranks& ranks) {
    PutOwner owner;
    PutOwner refused;
    const std::vector<std::byte> outside(std::size_t{6} << 20, std::byte{9});
    if (ranks.rank == 1) {
      EXPECT_EQ(ranks.fabric.put(ranks.long_put(owner)), Status::ok);
      for (int i = 0; i < 100; ++i) EXPECT_EQ(ranks.fabric.put_word(0, 2048 + 8, 1), Status::ok);
      Put put = ranks.long_put(refused);
      put.source = outside.data();
      put.bytes = outside.size();
      put.signal_offset = 1024;
      put.target_offset = std::size_t{30} << 20;
      put.signal = 77;
      EXPECT_EQ(ranks.fabric.put(put), Status::invalid_argument);
      EXPECT_EQ(refused.status(), Status::invalid_argument);
      EXPECT_TRUE(refused.drained());
    }
    ranks.meet();
    if (ranks.rank == 1) return ranks.progress_until([&] { return owner.drained(); });
    ranks.progress_until([&] { return load_word(ranks.arena + kSignal) == 5; });
    EXPECT_EQ(load_word(ranks.arena + kSignal), 5U);
    EXPECT_NE(load_word(ranks.arena + 1024), 77U) << "a signal without its payload";
  };
  open([](Options&) {}, play, tests::named_verbs_modes());
}

}  // namespace
}  // namespace torii::libfabric
