// SPDX-License-Identifier: Apache-2.0
// The memory that engines of UCX register, and how peers find it.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/fabric/words.hpp"
#include "tests/fabric/refusal.hpp"
#include "tests/fabric/transports.hpp"
#include "tests/support/thread_ranks.hpp"
#include "transports/ucx/transport.hpp"

namespace {

// They count memory for arenas alone: tables are shorter.
std::atomic<std::size_t> registrations = 0;
std::atomic<std::size_t> registered_bytes = 0;
std::atomic<std::size_t> refused_bytes = SIZE_MAX;  ///< registrations of so many bytes are refused
std::atomic<std::size_t> puts_made = 0;

}  // namespace

/// Stands before UCX's function of that name, and counts.
extern "C" ucs_status_t ucp_mem_map(ucp_context_h context, const ucp_mem_map_params_t* what, ucp_mem_h* memory) {
  static const auto real = reinterpret_cast<decltype(&ucp_mem_map)>(dlsym(RTLD_NEXT, "ucp_mem_map"));
  if (what->length >= 64 << 10) {
    ++registrations;
    registered_bytes += what->length;
  }
  return what->length == refused_bytes ? UCS_ERR_NO_MEMORY : real(context, what, memory);
}

/// Likewise.
extern "C" ucs_status_ptr_t ucp_put_nbx(ucp_ep_h to, const void* source, std::size_t bytes, std::uint64_t address,
                                        ucp_rkey_h key, const ucp_request_param_t* how) {
  static const auto real = reinterpret_cast<decltype(&ucp_put_nbx)>(dlsym(RTLD_NEXT, "ucp_put_nbx"));
  ++puts_made;
  return real(to, source, bytes, address, key, how);
}

namespace torii::ucx {
namespace {

using tests::expect_holds;
using tests::run_ranks_as_threads;

TEST(UcxEngines, RegisterTheArenaOnceTogether) {
  for (const int engines : {1, 4}) {
    registrations = registered_bytes = 0;
    run_ranks_as_threads(2, [&](Bootstrap& bootstrap) {
      const auto opened = tests::open_transport("ucx_tcp_puts", bootstrap, engines);
      EXPECT_EQ(opened->transport().capabilities().engines, engines);
      gather_values(bootstrap, 0);
    });
    EXPECT_EQ(registrations, 2U) << "one for each rank, of " << engines << " engines";
    EXPECT_EQ(registered_bytes, 2 * tests::kArenaBytes) << engines;
  }
}

/// Until a peer has read of an extent, payloads for it travel in messages.
TEST(UcxEngines, GrowByExtentsThatPeersFindByThemselves) {
  constexpr std::size_t kPart = std::size_t{64} << 10;
  run_ranks_as_threads(2, [&](Bootstrap& bootstrap) {
    std::vector<std::byte> memory(4 * kPart + 4096);
    void* aligned = memory.data();
    std::size_t room = memory.size();
    auto* const arena = static_cast<std::byte*>(std::align(4096, 4 * kPart, aligned, room));
    transports::PeerStates peers(2, 1);
    transports::Sleepers sleepers;
    const int peer = 1 - bootstrap.rank();
    const Shared shared = {arena, 4 * kPart, bootstrap.rank(), 2, peers, sleepers};
    const Manner manner = {.puts = true, .peer_errors = true, .wakes = false};
    const auto device = std::make_shared<Device>(find_selections("tcp", {"127.0.0.1"}).at(0), manner, 2);
    device->register_extent(arena, {0, kPart});
    Engine engine(device, 0, shared);
    engine.connect(gather_texts(bootstrap, engine.card()));
    std::uint64_t word = 0;
    const auto exchange = [&](std::size_t to) {
      PutOwner owner;
      Put put;
      put.peer = peer;
      put.source = arena;
      put.bytes = kPart / 2;
      put.signal_offset = to;
      put.target_offset = to + kLineBytes;
      put.signal = ++word;
      put.owner = owner.count();
      EXPECT_EQ(engine.put(put), Status::ok);
      const auto is_there = [&] { return load_word(arena + to) == word && owner.drained(); };
      for (int time = 0; time < 50'000 && !is_there(); ++time) {
        engine.progress();
        usleep(100);
      }
      EXPECT_TRUE(is_there());
      EXPECT_EQ(owner.status(), Status::ok);
      gather_values(bootstrap, 0);
      const std::size_t made = puts_made;
      gather_values(bootstrap, 0);
      return made;
    };
    const std::size_t before = exchange(kPart / 4);
    EXPECT_GE(before, 4U) << "payload and signal of each rank";
    engine.pin({kPart, kPart});
    engine.pin({kPart, kPart});  // once
    gather_values(bootstrap, 0);
    EXPECT_EQ(exchange(kPart), before) << "the table is read first";
    std::size_t later = before;
    for (int time = 0; time < 100 && later == before; ++time) later = exchange(kPart);
    EXPECT_GT(later, before);
    gather_values(bootstrap, 0);
  });
}

/// The fence between payload and signal waits for no peer: one that is in no call, or dead without UCX knowing it yet,
/// must not hold up what others get.
TEST(UcxEngines, PutPastAPeerThatTakesNothing) {
  constexpr std::size_t kPart = std::size_t{64} << 10;
  std::atomic<bool> has_come = false;
  std::atomic<std::uint64_t> confirmed = 0;
  run_ranks_as_threads(3, [&](Bootstrap& bootstrap) {
    std::vector<std::byte> arena(kPart);
    transports::PeerStates peers(3, 1);
    transports::Sleepers sleepers;
    const int rank = bootstrap.rank();
    const Shared shared = {arena.data(), kPart, rank, 3, peers, sleepers};
    const Manner manner = {.puts = true, .peer_errors = true, .wakes = false};
    const auto device = std::make_shared<Device>(find_selections("tcp", {"127.0.0.1"}).at(0), manner, 3);
    device->register_extent(arena.data(), {0, kPart});
    Engine engine(device, 0, shared);
    engine.connect(gather_texts(bootstrap, engine.card()));
    PutOwner owner;
    const auto put_to = [&](int peer, std::uint64_t signal) {
      Put put;
      put.peer = peer;
      put.source = arena.data();
      put.bytes = kPart / 2;
      put.target_offset = kPart / 2;
      put.signal_offset = 0;
      put.signal = signal;
      put.owner = owner.count();
      EXPECT_EQ(engine.put(put), Status::ok);
    };
    const auto await = [&](std::uint64_t signal) {
      if (rank == 0) engine.flush();
      const auto is_over = [&] { return rank == 0 ? engine.confirmed() : confirmed >= signal; };
      for (int time = 0; time < 50'000 && !is_over(); ++time) {
        engine.progress();
        if (rank == 2 && signal == 2 && load_word(arena.data()) == 2) has_come = true;
        usleep(100);
      }
      EXPECT_TRUE(is_over());
      EXPECT_EQ(rank == 0 ? signal : load_word(arena.data()), signal);
      if (rank == 0) confirmed = signal;
    };
    // Connecting needs both ends.
    for (int peer = 1; rank == 0 && peer < 3; ++peer) put_to(peer, 1);
    await(1);
    gather_values(bootstrap, 0);
    if (rank == 0) {
      put_to(1, 2);
      put_to(2, 2);
    }
    for (int time = 0; rank == 1 && time < 100'000 && !has_come; ++time) usleep(100);
    EXPECT_TRUE(rank != 1 || has_come);
    await(2);
    EXPECT_EQ(owner.status(), Status::ok);
    gather_values(bootstrap, 0);
  });
}

/// A connection that is being closed may still end the reading of a table.
TEST(UcxEngines, LearnNothingOfAPeerWhoseConnectionIsClosed) {
  constexpr std::size_t kPart = std::size_t{64} << 10;
  run_ranks_as_threads(2, [&](Bootstrap& bootstrap) {
    std::vector<std::byte> arena(kPart);
    transports::PeerStates peers(2, 1);
    transports::Sleepers sleepers;
    const int peer = 1 - bootstrap.rank();
    const Shared shared = {arena.data(), kPart, bootstrap.rank(), 2, peers, sleepers};
    const Manner manner = {.puts = true, .peer_errors = true, .wakes = false};
    const auto device = std::make_shared<Device>(find_selections("tcp", {"127.0.0.1"}).at(0), manner, 2);
    device->register_extent(arena.data(), {0, kPart});
    Worker worker(device, 0, shared);
    worker.connect(gather_texts(bootstrap, worker.card()));
    EXPECT_NE(worker.connection(peer).find(0, kPart), nullptr);
    gather_values(bootstrap, 0);
    worker.give_up();
    worker.learn_places(peer, *device->table());
    EXPECT_EQ(worker.connection(peer).find(0, kPart), nullptr);
    gather_values(bootstrap, 0);
    worker.close(false);
  });
}

TEST(UcxEngines, SayWhatCannotBePinned) {
  const Manner manner = {.puts = true, .peer_errors = true, .wakes = false};
  Device device(find_selections("tcp", {"127.0.0.1"}).at(0), manner, 1);
  constexpr std::size_t kPart = std::size_t{96} << 10;
  std::vector<std::byte> arena(kPart + kExtentsMost);
  refused_bytes = kPart;
  try {
    device.register_extent(arena.data(), {0, kPart});
    ADD_FAILURE() << "UCX refuses";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::no_resource);
    expect_holds(error.what(),
                 "UCX: registering 98304 bytes for the arena (raise the limit of locked memory, ulimit -l): ");
  }
  refused_bytes = SIZE_MAX;
  device.register_extent(arena.data(), {0, kPart});
  EXPECT_NE(device.regions().find(0, kPart), nullptr);
  // As many as peers can know, and no more.
  for (std::size_t i = 1; i < kExtentsMost; ++i) device.register_extent(arena.data(), {kPart + i, 1});
  EXPECT_THROW(device.register_extent(arena.data(), {kPart, kExtentsMost}), Error);
}

}  // namespace
}  // namespace torii::ucx
