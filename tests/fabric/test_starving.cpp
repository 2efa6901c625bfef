// SPDX-License-Identifier: Apache-2.0
// Several peers that take nothing, and two ranks that go on beside them.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/fabric/put_owner.hpp"
#include "runtime/fabric/words.hpp"
#include "tests/fabric/imposed_modes.hpp"
#include "tests/support/test_run.hpp"
#include "tests/support/thread_ranks.hpp"
#include "transports/libfabric/fabric.hpp"
#include "transports/libfabric/stock.hpp"

namespace torii::libfabric {
namespace {

TEST(Stock, LeavesEachPeerItsFloorWhateverOthersHold) {
  constexpr std::size_t kShared = 100;
  constexpr std::size_t kFloor = 4;
  constexpr std::size_t kPeers = 20;
  for (const tests::Seed& seed : tests::seeds_of("fabric_starving", 1)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed.value);
    Stock stock(kShared, kFloor);
    std::vector<std::size_t> held(kPeers, 0);
    for (int time = 0; time < 100'000; ++time) {
      std::size_t& one = held[random() % kPeers];
      const std::size_t amount = 1 + random() % kFloor;
      std::size_t all = 0;
      for (const std::size_t each : held) all += each;
      if (random() % 3 == 0 && one >= amount) {
        stock.give_back(one, amount);
      } else if (stock.may_take(one, amount)) {
        ASSERT_LE(all + amount, kShared + kPeers * kFloor) << "more than there is";
        stock.take(one, amount);
      } else {
        ASSERT_GT(one + amount, kFloor) << "a peer below its floor is refused";
      }
    }
  }
}

TEST(Stock, OfAllThatIsSharedOneSilentPeerKeepsHalf) {
  Stock stock(64, 2);
  std::size_t silent = 0;
  while (stock.may_take(silent, 1)) stock.take(silent, 1);
  EXPECT_EQ(silent, 2U + 32U);
  std::size_t next = 0;
  while (stock.may_take(next, 1)) stock.take(next, 1);
  EXPECT_EQ(next, 2U + 16U);
  stock.give_back(silent, silent);
  EXPECT_EQ(silent, 0U);
  EXPECT_TRUE(stock.can_hold(66));
  EXPECT_FALSE(stock.can_hold(67));
}

constexpr int kSilent = 8;
constexpr int kRanks = kSilent + 2;
constexpr std::size_t kLongBytes = std::size_t{1} << 20;
constexpr std::size_t kArenaBytes = 4 * kLongBytes;
/// More to each silent peer than its sockets hold and than it may have operations for.
constexpr std::uint64_t kToSilent = 40;
constexpr std::uint64_t kExchanges = 200;

class Player {
 public:
  Player(Fabric& fabric, std::byte* arena) : fabric_(fabric), arena_(arena) {}

  void put(int peer, std::uint64_t place, std::size_t bytes, std::uint64_t signal, const PutOwner& owner) {
    Put put;
    put.peer = peer;
    put.source = arena_ + 2 * kLongBytes;
    put.bytes = bytes;
    put.signal_offset = place;
    put.target_offset = kLongBytes;
    put.signal = signal;
    put.owner = owner.count();
    ASSERT_EQ(fabric_.put(put), Status::ok);
  }
  template <class Done>
  bool await(const Done& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done()) {
      EXPECT_EQ(fabric_.progress(), Status::ok) << fabric_.failure_text();
      if (std::chrono::steady_clock::now() > deadline) return false;
    }
    return true;
  }
  bool await_word(std::uint64_t place, std::uint64_t word) {
    return await([=, this] { return load_word(arena_ + place) == word; });
  }

 private:
  Fabric& fabric_;
  std::byte* arena_;
};

/// Two ranks put to silent ones all that their engines let them, then exchange short and long messages. Nobody of the
/// silent ones calls anything before that is over, so one put that waits for them is never done.
void exchange_beside_silent_peers(const std::string& provider, const Api& api) {
  tests::run_ranks_as_threads(
      kRanks,
      [&](Bootstrap& bootstrap) {
        std::vector<std::byte> memory(kArenaBytes + 4096);
        void* aligned = memory.data();
        std::size_t room = memory.size();
        Options options;
        options.arena = static_cast<std::byte*>(std::align(4096, kArenaBytes, aligned, room));
        options.arena_bytes = kArenaBytes;
        options.engines = 1;
        options.provider = provider;
        options.source_addresses = {"127.0.0.1"};
        options.operations = 32;
        options.bounce_bytes = 4096;
        Fabric fabric(bootstrap, options, api);
        Player player(fabric, options.arena);
        gather_values(bootstrap, 0);
        const bool talks = bootstrap.rank() >= kSilent;
        if (talks) {
          const int other = bootstrap.rank() == kSilent ? kSilent + 1 : kSilent;
          const std::uint64_t base = bootstrap.rank() == kSilent ? 0 : kLongBytes / 2;
          PutOwner much;
          // One after the other: each takes half of what is left.
          for (int peer = 0; peer < kSilent; ++peer) {
            for (std::uint64_t i = 0; i < kToSilent; ++i)
              player.put(peer, base + i * kLineBytes, kLongBytes / 4, 1, much);
            for (int call = 0; call < 1000; ++call) EXPECT_EQ(fabric.progress(), Status::ok);
          }
          EXPECT_FALSE(much.drained()) << "sockets have taken all, so nothing is tested";
          PutOwner little;
          for (std::uint64_t number = 1; number <= kExchanges; ++number) {
            const std::uint64_t place = number % 2 * kLineBytes;
            player.put(other, place, number % 4 == 0 ? kLongBytes / 8 : 8, number, little);
            ASSERT_TRUE(player.await_word(place, number)) << "exchange " << number << " starves";
            ASSERT_TRUE(player.await([&] { return little.drained(); })) << "a put of exchange " << number << " starves";
          }
        }
        gather_values(bootstrap, 0);
        for (std::uint64_t i = 0; i < kToSilent && !talks; ++i) {
          EXPECT_TRUE(player.await_word(i * kLineBytes, 1)) << "what was put to a silent rank";
          EXPECT_TRUE(player.await_word(kLongBytes / 2 + i * kLineBytes, 1)) << "what was put to a silent rank";
        }
        EXPECT_TRUE(player.await([&] { return fabric.drained(); }));
        gather_values(bootstrap, 0);
      },
      120);
}

TEST(SilentPeers, StarveNobodyOverTcp) { exchange_beside_silent_peers("tcp;ofi_rxm", {}); }

TEST(SilentPeers, StarveNobodyOverNet) { exchange_beside_silent_peers("net", {}); }

/// Nothing may be injected and sources must be registered, so words take bounce memory.
TEST(SilentPeers, StarveNobodyOfBounceMemory) {
  tests::Modes modes;
  modes.local_regions = modes.no_inject = true;
  exchange_beside_silent_peers("tcp;ofi_rxm", tests::impose(modes));
}

}  // namespace
}  // namespace torii::libfabric
