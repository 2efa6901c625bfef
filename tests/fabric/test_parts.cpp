// SPDX-License-Identifier: Apache-2.0
// The libfabric transport's parts on their own: notices from the network, bounce memory, providers, and what is
// refused with which words.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/descriptor.hpp"
#include "runtime/execution/words.hpp"
#include "tests/fabric/imposed_modes.hpp"
#include "tests/fabric/refusal.hpp"
#include "tests/fabric/transports.hpp"
#include "tests/support/thread_ranks.hpp"
#include "transports/libfabric/arrivals.hpp"
#include "transports/libfabric/bounce_pool.hpp"
#include "transports/libfabric/fabric.hpp"
#include "transports/libfabric/notice.hpp"
#include "transports/libfabric/providers.hpp"
#include "transports/libfabric/streams.hpp"

namespace torii::libfabric {
namespace {

using tests::holds;
using tests::run_ranks_as_threads;

constexpr std::size_t kLines = 1000;

struct alignas(kLineBytes) Line {
  std::uint64_t words[8];
};

TEST(Arrivals, PublishesAnInvertedSignal) {
  std::vector<Line> arena(kLines);
  Arrivals arrivals(reinterpret_cast<std::byte*>(arena.data()), kLines * kLineBytes, false);
  arena[7].words[0] = ~std::uint64_t{42};
  EXPECT_TRUE(arrivals.take(make_notice(Deed::publish, 7 * kLineBytes)));
  EXPECT_EQ(arena[7].words[0], 42u);
  EXPECT_TRUE(arrivals.take(make_notice(Deed::wake, 7 * kLineBytes)));
  EXPECT_EQ(arena[7].words[0], 42u);
}

TEST(Arrivals, PublishesWithTheSecondHalfAndStartsAnew) {
  std::vector<Line> arena(kLines);
  Arrivals arrivals(reinterpret_cast<std::byte*>(arena.data()), kLines * kLineBytes, true);
  for (std::uint64_t time = 1; time <= 3; ++time) {
    arena[64].words[0] = ~time;
    arena[65].words[0] = ~time;
    EXPECT_TRUE(arrivals.take(make_notice(Deed::half, 64 * kLineBytes)));
    EXPECT_TRUE(arrivals.take(make_notice(Deed::half, 65 * kLineBytes)));
    EXPECT_EQ(arena[64].words[0], ~time);
    EXPECT_TRUE(arrivals.take(make_notice(Deed::half, 64 * kLineBytes)));
    EXPECT_EQ(arena[64].words[0], time);
    EXPECT_EQ(arena[65].words[0], ~time);
    EXPECT_TRUE(arrivals.take(make_notice(Deed::half, 65 * kLineBytes)));
    EXPECT_EQ(arena[65].words[0], time);
  }
}

TEST(Arrivals, ForgetsHalvesInMemoryThatServesAnew) {
  std::vector<Line> arena(kLines);
  Arrivals arrivals(reinterpret_cast<std::byte*>(arena.data()), kLines * kLineBytes, true);
  const std::uint64_t places[] = {63 * kLineBytes, 64 * kLineBytes, 127 * kLineBytes, 128 * kLineBytes};
  for (const std::uint64_t place : places) EXPECT_TRUE(arrivals.take(make_notice(Deed::half, place)));
  arrivals.forget(64 * kLineBytes, 64 * kLineBytes);
  for (const std::uint64_t place : places) {
    std::uint64_t& word = arena[place / kLineBytes].words[0];
    word = ~std::uint64_t{5};
    EXPECT_TRUE(arrivals.take(make_notice(Deed::half, place)));
    EXPECT_EQ(word == 5, place == places[0] || place == places[3]) << place;
  }
  arrivals.forget(0, kLines * kLineBytes);
  arrivals.forget(0, 0);
}

TEST(Arrivals, SurvivesEveryNotice) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  std::vector<Line> arena(kLines);
  Arrivals arrivals(reinterpret_cast<std::byte*>(arena.data()), kLines * kLineBytes, true);
  Arrivals without_halves(reinterpret_cast<std::byte*>(arena.data()), kLines * kLineBytes, false);
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t notice = random() >> random() % 64;
    const bool exists = line_of(notice) < kLines && deed_bits(notice) <= 2;
    EXPECT_EQ(arrivals.take(notice), exists) << notice;
    EXPECT_EQ(without_halves.take(notice), exists && deed_bits(notice) != 2) << notice;
  }
  for (const Line& line : arena) {
    for (int word = 1; word < 8; ++word) ASSERT_EQ(line.words[word], 0u);
  }
}

TEST(Notice, FourBytesNameTheLinesOfTheDefaultArena) {
  EXPECT_EQ(arena_bytes_max(4), std::uint64_t{64} << 30);
  EXPECT_EQ(arena_bytes_max(8), UINT64_MAX);
  const std::uint64_t last = (std::uint64_t{64} << 30) - kLineBytes;
  EXPECT_LE(make_notice(Deed::half, last), UINT32_MAX);
  EXPECT_EQ(line_of(make_notice(Deed::half, last)), last / kLineBytes);
}

TEST(Notice, MarksFillWhatLinesLeaveFree) {
  EXPECT_EQ(mark_bits(std::uint64_t{1} << 30, 4), 0xfc000000U);
  EXPECT_EQ(mark_bits(std::uint64_t{64} << 30, 4), 0U);
  EXPECT_EQ(mark_bits(std::uint64_t{256} << 30, 8), ~std::uint64_t{0} << 34);
  for (const std::uint64_t bytes :
       {std::uint64_t{64}, std::uint64_t{128}, std::uint64_t{96} << 20, std::uint64_t{1} << 40}) {
    const std::uint64_t last = make_notice(Deed::half, bytes - kLineBytes);
    EXPECT_EQ((last | 3) & ~notice_bits(bytes), 0U) << bytes;
    EXPECT_EQ(notice_bits(bytes) ^ mark_bits(bytes, 8), UINT64_MAX) << bytes;
    EXPECT_EQ(mark_bits(bytes, 4) & mark_bits(bytes, 8), mark_bits(bytes, 4)) << bytes;
  }
}

/// Memory of lines, behind which nothing may be given.
struct Lines {
  std::vector<std::byte> memory = std::vector<std::byte>(4 * 4096 + 5 * kLineBytes);
  BouncePool pool{memory.data(), memory.size()};
};

TEST(BouncePool, NeverGivesAPieceTwice) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  Lines lines;
  std::deque<BouncePool::Piece> out;
  std::size_t out_bytes = 0;
  std::size_t given = 0;
  const std::size_t all_bytes = lines.pool.free_bytes();
  EXPECT_EQ(all_bytes, lines.memory.size());
  for (int i = 0; i < 100'000; ++i) {
    const std::size_t bytes = 1 + random() % (random() % 4 == 0 ? lines.pool.bytes() : 2000);
    const BouncePool::Piece piece = lines.pool.take(bytes);
    if (piece.at != nullptr) {
      ++given;
      out_bytes += piece.bytes;
      ASSERT_GE(piece.bytes, bytes);
      ASSERT_GE(piece.at, lines.memory.data());
      ASSERT_LE(piece.at + piece.bytes, lines.memory.data() + lines.memory.size());
      for (const BouncePool::Piece& other : out) {
        ASSERT_TRUE(piece.at + piece.bytes <= other.at || other.at + other.bytes <= piece.at);
      }
      out.push_back(piece);
    } else {
      ASSERT_FALSE(out.empty()) << "an empty pool refuses " << bytes;
    }
    ASSERT_EQ(lines.pool.free_bytes() + out_bytes, all_bytes);
    while (!out.empty() && (piece.at == nullptr ? out.size() > i % 4U : random() % 3 == 0)) {
      const auto which = static_cast<std::ptrdiff_t>(random() % out.size());
      out_bytes -= out[static_cast<std::size_t>(which)].bytes;
      lines.pool.give_back(out[static_cast<std::size_t>(which)]);
      out.erase(out.begin() + which);
    }
  }
  EXPECT_GT(given, 10'000U);
  EXPECT_EQ(lines.pool.take(lines.pool.bytes() + 1).at, nullptr);
}

/// The ring that this once was stood still behind the oldest piece.
TEST(BouncePool, APieceThatStaysHoldsUpNoOther) {
  Lines lines;
  const BouncePool::Piece stays = lines.pool.take(sizeof(std::uint64_t));
  ASSERT_NE(stays.at, nullptr);
  for (std::size_t i = 0; i < 10'000; ++i) {
    const std::size_t bytes = i % 3 == 0 ? 2 * 4096 : 1 + i % 2000;
    const BouncePool::Piece piece = lines.pool.take(bytes);
    ASSERT_NE(piece.at, nullptr) << bytes << " bytes, time " << i;
    lines.pool.give_back(piece);
  }
}

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

/// Two ranks with engines over loopback addresses; `look` sees each rank's transport.
void open_over(const std::function<void(int rank, Options& options)>& change,
               const std::function<void(int rank, Fabric& fabric, std::byte* arena)>& look, const Api& api = {}) {
  run_ranks_as_threads(2, [&](Bootstrap& bootstrap) {
    std::vector<std::byte> memory(2 << 20);
    void* aligned = memory.data();
    std::size_t room = memory.size();
    Options options;
    options.arena = static_cast<std::byte*>(std::align(4096, 1 << 20, aligned, room));
    options.arena_bytes = 1 << 20;
    options.provider = "tcp;ofi_rxm";
    change(bootstrap.rank(), options);
    Fabric fabric(bootstrap, options, api);
    look(bootstrap.rank(), fabric, options.arena);
    gather_values(bootstrap, 0);
  });
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
      fabric.sleep(
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
  run_ranks_as_threads(2, [](Bootstrap& bootstrap) {
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

/// An epoll descriptor behind another one, and a TCP stream with its listener.
struct Waited {
  Waited() {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof(at);
    auto* const address = reinterpret_cast<sockaddr*>(&at);
    EXPECT_EQ(bind(listener.get(), address, bytes) | listen(listener.get(), 1), 0);
    EXPECT_EQ(getsockname(listener.get(), address, &bytes) | connect(stream.get(), address, bytes), 0);
    peer = Descriptor(accept(listener.get(), nullptr, nullptr));
    watch(outer, inner.get());
  }
  static void watch(const Descriptor& epoll, int descriptor) {
    epoll_event event{};
    event.events = EPOLLIN;
    EXPECT_EQ(epoll_ctl(epoll.get(), EPOLL_CTL_ADD, descriptor, &event), 0);
  }
  Descriptor outer{epoll_create1(EPOLL_CLOEXEC)}, inner{epoll_create1(EPOLL_CLOEXEC)};
  Descriptor listener{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  Descriptor stream{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  Descriptor peer{-1};
};

TEST(Streams, AreFoundBehindDescriptorsThatWait) {
  Waited waited;
  Waited::watch(waited.inner, waited.listener.get());
  EXPECT_EQ(shut_down_streams(waited.outer.get()), 0) << "a listener is none";
  Waited::watch(waited.inner, waited.stream.get());
  EXPECT_EQ(shut_down_streams(waited.outer.get()), 1);
  char byte = 0;
  EXPECT_EQ(recv(waited.peer.get(), &byte, 1, 0), 0) << "the stream has ended";
  sockaddr_in at{};
  socklen_t bytes = sizeof(at);
  ASSERT_EQ(getsockname(waited.listener.get(), reinterpret_cast<sockaddr*>(&at), &bytes), 0);
  const Descriptor again(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect(again.get(), reinterpret_cast<const sockaddr*>(&at), bytes), 0) << "its listener still listens";
}

TEST(Streams, OfANumberThatHasBeenGivenAwayStay) {
  Waited waited;
  const Descriptor kept(dup(waited.stream.get()));  // as a forked child would keep it
  Waited::watch(waited.inner, waited.stream.get());
  Waited other;
  ASSERT_EQ(dup2(other.stream.get(), waited.stream.get()), waited.stream.get());
  EXPECT_EQ(shut_down_streams(waited.outer.get()), 0);
  EXPECT_EQ(send(other.stream.get(), "x", 1, MSG_NOSIGNAL), 1);
  EXPECT_EQ(shut_down_streams(-1), 0);
  EXPECT_EQ(shut_down_streams(other.stream.get()), 0) << "it waits for nothing";
}

TEST(Streams, AreFoundByTheirAddresses) {
  const Waited accepted;
  const Waited connected;
  const Waited other;
  const auto address = [](const Descriptor& listener) {
    alignas(sockaddr_storage) SocketAddress at{};
    socklen_t bytes = at.size();
    EXPECT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(at.data()), &bytes), 0);
    return at;
  };
  SocketAddress with_rest = address(connected.listener);
  with_rest.back() = std::byte{1};  // what lies behind an address of IPv4 is no part of it
  const SocketAddress none{};
  // One end of each: the other belongs to the other side of the connection.
  EXPECT_EQ(shut_down_streams(address(accepted.listener), {none, with_rest}), 2);
  char byte = 0;
  EXPECT_EQ(recv(accepted.stream.get(), &byte, 1, 0), 0);
  EXPECT_EQ(recv(connected.peer.get(), &byte, 1, 0), 0);
  EXPECT_EQ(send(other.stream.get(), "x", 1, MSG_NOSIGNAL), 1);
  EXPECT_EQ(recv(other.peer.get(), &byte, 1, 0), 1);
  EXPECT_EQ(shut_down_streams(none, {none}), 0) << "sockets without an address of IP are no streams";
}

/// ofi_rxm of libfabric 1.17 ends a process that closes an engine while a write with its notice has come in part.
void close_with_half_a_write(const std::string& transport_name, bool has_descriptor) {
  constexpr std::size_t kBytes = tests::kArenaBytes / 2;  // more than sockets hold
  constexpr int kEngines = 2;
  run_ranks_as_threads(2, [&](Bootstrap& bootstrap) {
    auto opened = tests::open_transport(transport_name, bootstrap, kEngines);
    Transport& transport = opened->transport();
    EXPECT_EQ(transport.capabilities().wakes_on_put, has_descriptor);
    if (bootstrap.rank() == 1) {
      for (int engine = 0; engine < kEngines; ++engine) {
        EXPECT_EQ(transport.put({0, engine, opened->arena() + kLineBytes, kLineBytes, kBytes, 0, 7, true}), Status::ok);
      }
    }
    gather_values(bootstrap, 0);
    if (bootstrap.rank() == 0) {
      for (int time = 0; time < 20; ++time) {
        EXPECT_EQ(transport.progress(), Status::ok);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      EXPECT_NE(load_word(opened->arena()), 7u) << "it has come as a whole";
      opened.reset();
    }
    gather_values(bootstrap, 0);
  });
}

TEST(Closing, WhileALongWriteHasComeInPart) { close_with_half_a_write("tcp;ofi_rxm", true); }

TEST(Closing, TheSameWithoutADescriptor) { close_with_half_a_write("rxm_alone", false); }

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

std::string refusal(const std::function<void(int rank, Options& options)>& change, Status status, const Api& api = {}) {
  return tests::refusal<Fabric, Options>(change, status, api);
}

TEST(Refusal, NamesTheRankAndTheCause) {
  holds(refusal([](int, Options& options) { options.provider = "tpc"; }, Status::unsupported),
        "rank 0 cannot use TORII_PROVIDER 'tpc': this libfabric has no such provider");
  tests::expect_common_refusals<Fabric, Options>("net");
}

TEST(Refusal, AnArenaWhoseLinesDoNotFitIntoTheData) {
  // Nothing of it is touched: the transport is refused before anybody writes.
  const auto large = [](int, Options& options) { options.arena_bytes = std::size_t{65} << 30; };
  holds(refusal(large, Status::unsupported, tests::impose({})),
        "enough for an arena of 64 GiB; this one has 65 GiB registered");
}

/// As under Open MPI, whose component asks for an arena that holds every window, while a device pins a part of it.
TEST(Refusal, NoneOfALargeArenaOfWhichLittleIsRegistered) {
  tests::Modes modes;
  modes.pins = true;
  constexpr std::size_t kPinned = std::size_t{1} << 20;
  const auto large = [](int, Options& options) {
    options.arena_bytes = std::size_t{256} << 30;
    options.pinned_bytes = kPinned;
  };
  const auto look = [=](int, Fabric& fabric, std::byte*) { EXPECT_EQ(fabric.capabilities().pinned_bytes, kPinned); };
  open_over(large, look, tests::impose(modes));
}

TEST(Refusal, APutFromOutsideThatNoBounceBufferHolds) {
  tests::Modes modes;
  modes.local_regions = true;
  run_ranks_as_threads(2, [&](Bootstrap& bootstrap) {
    const auto opened = tests::open_transport("like_verbs", bootstrap, 1);
    if (bootstrap.rank() == 0) {
      const std::vector<std::byte> outside(5 << 20);
      Put put;
      put.peer = 1;
      put.source = outside.data();
      put.bytes = outside.size();
      put.target_offset = 1 << 20;
      Status status = Status::ok;
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (status == Status::ok && std::chrono::steady_clock::now() < deadline) status = opened->transport().put(put);
      EXPECT_EQ(status, Status::transport);
      holds(opened->transport().failure_text(), "a write of 5242880 bytes to rank 1 failed: Message too long");
      EXPECT_EQ(opened->transport().progress(), Status::transport);
    }
    gather_values(bootstrap, 0);
  });
}

}  // namespace
}  // namespace torii::libfabric
