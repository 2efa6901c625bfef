// SPDX-License-Identifier: Apache-2.0
// How the libfabric transport is set up: providers, rails, sleeping, pinned memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/fabric/words.hpp"
#include "tests/fabric/imposed_modes.hpp"
#include "tests/fabric/open_over.hpp"
#include "tests/fabric/transports.hpp"
#include "tests/support/thread_ranks.hpp"
#include "transports/libfabric/fabric.hpp"
#include "transports/libfabric/providers.hpp"
#include "transports/network/extent_table.hpp"

namespace torii::libfabric {
namespace {

TEST(Providers, EachIsUsableOrSaysWhyNot) {
  const std::vector<ProviderReport> all = list_providers({}, {"127.0.0.1"});
  const auto find = [&](const std::string& name) { return *std::ranges::find(all, name, &ProviderReport::name); };
  for (const ProviderReport& one : all) EXPECT_TRUE(one.usable || !one.reason.empty()) << one.name;
  EXPECT_TRUE(find("tcp;ofi_rxm").usable);
  EXPECT_EQ(find("tcp;ofi_rxm").devices, std::vector<std::string>{"lo"});
  EXPECT_TRUE(find("net").usable);
  EXPECT_FALSE(find("shm").chosen);
  EXPECT_EQ(std::ranges::count(all, true, &ProviderReport::chosen), 1);
}

/// FI_UNIVERSE_SIZE as libfabric reads it at its first call.
std::string universe_at_first;

int remember_universe(std::uint32_t, const char*, const char*, std::uint64_t, const fi_info*, fi_info**) {
  const char* const value = std::getenv("FI_UNIVERSE_SIZE");
  universe_at_first = value == nullptr ? "none" : value;
  return -FI_ENODATA;
}

/// In a process that has not called libfabric yet; ends it with the code 0 if the value is right.
[[noreturn]] void start_for(int ranks, const char* of_user, const std::string& expected) {
  if (of_user != nullptr) setenv("FI_UNIVERSE_SIZE", of_user, 1);
  start_quietly({remember_universe, fi_fabric}, ranks);
  start_quietly({remember_universe, fi_fabric}, 1000);
  const char* const after = std::getenv("FI_UNIVERSE_SIZE");
  const bool restored = of_user == nullptr ? after == nullptr : after != nullptr && std::string(after) == of_user;
  std::_Exit(universe_at_first == expected && restored ? 0 : 1);
}

TEST(Start, AsksForQueuesThatDevicesHaveAndJobsNeed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const int ranks : {1, 2, 127}) EXPECT_EXIT(start_for(ranks, nullptr, "127"), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(start_for(128, nullptr, "128"), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(start_for(2, "16", "16"), testing::ExitedWithCode(0), "");
}

TEST(Rails, EnginesOfAllRanksStandInTheNetworksOfRankZero) {
  open_over(
      [](int rank, Options& options) {
        options.engines = 3;
        options.named_interfaces = true;
        options.source_addresses = {"127.0.0.1", "127.0.0.2"};
        if (rank == 1) options.source_addresses = {"127.0.0.3", "127.0.0.2", "127.0.0.1"};
      },
      [](int rank, Fabric& fabric, std::byte*) {
        EXPECT_EQ(fabric.sources(), (std::vector<std::string>{"127.0.0.1", "127.0.0.2", "127.0.0.1"})) << rank;
        EXPECT_EQ(fabric.devices()[0], "lo");
        EXPECT_EQ(fabric.provider(), "tcp;ofi_rxm");
      });
}

TEST(Rails, OneAddressWhereNoneIsNamed) {
  open_over(
      [](int, Options& options) {
        options.engines = 2;
        options.source_addresses = {"127.0.0.1", "127.0.0.2"};
      },
      [](int, Fabric& fabric, std::byte*) {
        EXPECT_EQ(fabric.sources(), (std::vector<std::string>{"127.0.0.1", "127.0.0.1"}));
      });
}

TEST(Rails, WithoutACommonNetworkEachRankKeepsItsOwnOrder) {
  open_over(
      [](int rank, Options& options) {
        options.engines = 2;
        options.named_interfaces = true;
        options.source_addresses = rank == 0 ? std::vector<std::string>{"127.0.0.2", "127.0.0.3"}
                                             : std::vector<std::string>{"127.0.0.4", "127.0.0.5"};
      },
      [](int rank, Fabric& fabric, std::byte*) {
        const std::vector<std::string> own = rank == 0 ? std::vector<std::string>{"127.0.0.2", "127.0.0.3"}
                                                       : std::vector<std::string>{"127.0.0.4", "127.0.0.5"};
        EXPECT_EQ(fabric.sources(), own);
      });
}

TEST(Sleep, WithoutADescriptorPutsStillArrive) {
  const auto without = [](int, Options& options) {
    options.engines = 1;
    options.source_addresses = {"127.0.0.1"};
    options.wait = WaitMode::spin;
  };
  open_over(without, [](int rank, Fabric& fabric, std::byte* arena) {
    EXPECT_FALSE(fabric.capabilities().wakes_on_put);
    ASSERT_EQ(fabric.put_word(1 - rank, 64, 7), Status::ok);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (load_word(arena + 64) != 7 && std::chrono::steady_clock::now() < deadline) {
      ASSERT_EQ(fabric.progress(), Status::ok);
      fabric.sleep_once(
          100, [](void*) { return true; }, nullptr);
    }
    EXPECT_EQ(load_word(arena + 64), 7u);
    while (!fabric.drained()) ASSERT_EQ(fabric.progress(), Status::ok);
  });
}

TEST(Pinning, RegistersWhatItIsToldAndSaysSo) {
  static constexpr std::size_t kPinnedBytes = 256 << 10;
  const auto half = [](int, Options& options) { options.pinned_bytes = kPinnedBytes; };
  open_over(half, [](int, Fabric& fabric, std::byte*) {
    EXPECT_EQ(fabric.capabilities().pinned_bytes, 0u);
    EXPECT_EQ(fabric.capabilities().put_bytes, 16384u);
    EXPECT_TRUE(fabric.capabilities().gathers);
  });
  tests::run_ranks_as_threads(2, [](Bootstrap& bootstrap) {
    const auto opened = tests::open_transport("mixed", bootstrap, 1);
    EXPECT_EQ(opened->transport().capabilities().put_bytes, 16384u);
    EXPECT_TRUE(opened->transport().capabilities().gathers);
    gather_values(bootstrap, 0);
  });
  const Api verbs = tests::impose(tests::verbs_modes());
  // The layer ends the process when a write leaves the region or comes from outside it.
  const auto put_all_of_it = [](int rank, Fabric& fabric, std::byte* arena) {
    EXPECT_EQ(fabric.capabilities().pinned_bytes, kPinnedBytes);
    arena[kPinnedBytes] = std::byte{static_cast<unsigned char>(1 + rank)};
    for (const std::size_t from : {kPinnedBytes - 4096, kPinnedBytes}) {
      Put put;
      put.peer = 1 - rank;
      put.source = arena + from;
      put.bytes = 4096;
      put.target_offset = from == kPinnedBytes ? kPinnedBytes / 2 : kPinnedBytes - 8192;
      put.signal_offset = put.target_offset - 64;
      put.signal = from;
      ASSERT_EQ(fabric.put(put), Status::ok);
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (load_word(arena + put.signal_offset) != from && std::chrono::steady_clock::now() < deadline) {
        ASSERT_EQ(fabric.progress(), Status::ok);
      }
      ASSERT_EQ(load_word(arena + put.signal_offset), from);
    }
    EXPECT_EQ(arena[kPinnedBytes / 2], std::byte{static_cast<unsigned char>(2 - rank)});
    while (!fabric.drained()) ASSERT_EQ(fabric.progress(), Status::ok);
  };
  open_over(half, put_all_of_it, verbs);
  const auto all = [](int, Options&) {};
  open_over(
      all, [](int, Fabric& fabric, std::byte*) { EXPECT_EQ(fabric.capabilities().pinned_bytes, std::size_t{1} << 20); },
      verbs);
}

void await_word(Fabric& fabric, const std::byte* arena, std::size_t offset, std::uint64_t word) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (load_word(arena + offset) != word && std::chrono::steady_clock::now() < deadline) {
    ASSERT_EQ(fabric.progress(), Status::ok);
  }
  ASSERT_EQ(load_word(arena + offset), word);
}

/// Peers read of an extent where it is when they first put there; the layer ends the process for a wrong key.
TEST(Pinning, GrowsByExtentsThatPeersFindByThemselves) {
  constexpr std::size_t kPart = std::size_t{64} << 10;
  for (const int engines : {1, 3}) {
    const auto begin_small = [=](int, Options& options) {
      options.engines = engines;
      options.extents = {{0, kPart}};
    };
    const auto grow = [=](int rank, Fabric& fabric, std::byte* arena) {
      EXPECT_EQ(tests::imposed_registrations(arena, std::size_t{1} << 20).bytes, kPart);
      std::uint64_t word = 0;
      for (std::size_t pinned = kPart; pinned < std::size_t{1} << 20; pinned *= 2) {
        fabric.pin({pinned, pinned});
        ASSERT_EQ(fabric.put_word(1 - rank, 64, ++word), Status::ok);  // the peer has pinned it, too
        await_word(fabric, arena, 64, word);
        PutOwner puts;
        for (int engine = 0; engine < engines; ++engine) {
          Put put;
          put.peer = 1 - rank;
          put.engine = engine;
          put.source = arena + pinned;
          put.bytes = pinned / 8;
          put.signal_offset = pinned + static_cast<std::size_t>(engine) * (pinned / 4);
          put.target_offset = put.signal_offset + 64;
          put.signal = word;
          put.owner = puts.count();
          ASSERT_EQ(fabric.put(put), Status::ok);
          await_word(fabric, arena, put.signal_offset, word);
        }
        while (!puts.drained()) ASSERT_EQ(fabric.progress(), Status::ok);
        EXPECT_EQ(puts.status(), Status::ok);
      }
      EXPECT_EQ(tests::imposed_registrations(arena, std::size_t{1} << 20).bytes, std::size_t{1} << 20);
    };
    open_over(begin_small, grow, tests::impose(tests::verbs_modes()));
  }
}

TEST(Pinning, APutWhereNothingIsPinnedFails) {
  const auto small = [](int, Options& options) { options.extents = {{0, std::size_t{64} << 10}}; };
  const auto look = [](int rank, Fabric& fabric, std::byte*) {
    PutOwner puts;
    if (rank == 0) {
      const std::vector<std::byte> bytes(100);
      Put put;
      put.peer = 1;
      put.source = bytes.data();
      put.bytes = bytes.size();
      put.signal_offset = std::size_t{128} << 10;
      put.target_offset = put.signal_offset + 64;
      put.owner = puts.count();
      EXPECT_EQ(fabric.put(put), Status::ok);
    }
    // Rank 1 has to answer.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(rank == 0 ? 10 : 1);
    while (fabric.progress() == Status::ok && std::chrono::steady_clock::now() < deadline) {
    }
    if (rank != 0) return;
    EXPECT_EQ(puts.status(), Status::transport);
    EXPECT_TRUE(tests::holds(fabric.failure_text(), "to rank 1 failed: Required key not available"))
        << fabric.failure_text();
  };
  open_over(small, look, tests::impose(tests::verbs_modes()));
}

TEST(Pinning, IsRefusedWithTheReason) {
  tests::Modes modes = tests::verbs_modes();
  const auto small = [](int, Options& options) { options.extents = {{0, std::size_t{64} << 10}}; };
  const auto look = [&](int rank, Fabric& fabric, std::byte*) {
    if (rank != 0) return;
    tests::refuse_registrations(-FI_ENOMEM);
    try {
      fabric.pin({std::size_t{64} << 10, std::size_t{64} << 10});
      ADD_FAILURE() << "the layer refuses";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::no_resource);
      EXPECT_STREQ(error.what(),
                   "libfabric: registering 65536 bytes for the arena (raise the limit of locked memory, ulimit -l): "
                   "Cannot allocate memory");
    }
    tests::refuse_registrations(0);
    fabric.pin({std::size_t{64} << 10, std::size_t{64} << 10});
  };
  open_over(small, look, tests::impose(modes));
}

TEST(Extents, OfATableAreThoseUpToTheFirstThatIsNotWhole) {
  ExtentTable table{};
  EXPECT_TRUE(transports::extents_in<std::uint64_t>(table).empty());
  table[0] = transports::row_of<std::uint64_t>({{0, 4096}, 10, 11});
  table[1] = transports::row_of<std::uint64_t>({{4096, 8192}, 20, 21});
  ASSERT_EQ(transports::extents_in<std::uint64_t>(table).size(), 2U);
  EXPECT_EQ(transports::extents_in<std::uint64_t>(table)[1].key, 21U);
  EXPECT_TRUE(transports::extents_in<std::uint64_t>(table)[1].extent.holds(4096, 8192));
  EXPECT_FALSE(transports::extents_in<std::uint64_t>(table)[1].extent.holds(4096, 8193));
  EXPECT_FALSE(transports::extents_in<std::uint64_t>(table)[1].extent.holds(UINT64_MAX, 2));
  table[0].extent.base ^= 1;
  EXPECT_TRUE(transports::extents_in<std::uint64_t>(table).empty());
}

/// Where nothing is pinned, or a registration belongs to one engine, each engine registers the arena.
TEST(Pinning, RegistersTheArenaOnceForAllEnginesOfADevice) {
  tests::Modes of_engine = tests::verbs_modes();
  of_engine.regions_of_engine = true;
  for (const int engines : {1, 4}) {
    const auto count = [engines](const tests::Modes& modes) {
      int registrations = 0;
      open_over([engines](int, Options& options) { options.engines = engines; },
                [&](int rank, Fabric& fabric, std::byte* arena) {
                  EXPECT_EQ(fabric.capabilities().engines, engines);
                  const std::size_t bytes = std::size_t{1} << 20;
                  const tests::Registered all = tests::imposed_registrations(arena, bytes);
                  EXPECT_EQ(all.bytes, bytes * static_cast<std::size_t>(all.count));
                  if (rank == 0) registrations = all.count;
                },
                tests::impose(modes));
      return registrations;
    };
    EXPECT_EQ(count(tests::verbs_modes()), 1);
    EXPECT_EQ(count({}), engines);
    EXPECT_EQ(count(of_engine), engines);
  }
}

TEST(Providers, ThatListenOnTcpCanBeAskedByAnybody) {
  for (const char* name : {"tcp;ofi_rxm", "tcp", "net", "sockets"}) {
    for (const std::uint32_t format : {FI_SOCKADDR_IN, FI_SOCKADDR_IN6}) EXPECT_TRUE(listens_on_tcp(name, format));
    EXPECT_FALSE(listens_on_tcp(name, FI_ADDR_STR)) << name;
  }
  // A port of RDMA connections refuses TCP, and its peer lives.
  for (const char* name : {"verbs;ofi_rxm", "verbs", "efa", "psm2"}) {
    EXPECT_FALSE(listens_on_tcp(name, FI_SOCKADDR_IN)) << name;
  }
}

TEST(Providers, OverIpTakeSourceAddresses) {
  for (const char* name : {"tcp;ofi_rxm", "tcp", "net", "sockets", "verbs;ofi_rxm"}) EXPECT_TRUE(is_over_ip(name));
  for (const char* name : {"efa", "cxi", "psm2", "shm", "ofi_rxm", ""}) EXPECT_FALSE(is_over_ip(name)) << name;
}

}  // namespace
}  // namespace torii::libfabric
