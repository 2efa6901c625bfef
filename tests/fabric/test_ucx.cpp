// SPDX-License-Identifier: Apache-2.0
// The UCX transport's parts on their own: what comes from peers, providers, abilities, and what is refused with which
// words.
#include <gtest/gtest.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/fabric/words.hpp"
#include "tests/fabric/refusal.hpp"
#include "tests/fabric/transports.hpp"
#include "tests/support/test_run.hpp"
#include "tests/support/thread_ranks.hpp"
#include "transports/ucx/message.hpp"
#include "transports/ucx/providers.hpp"
#include "transports/ucx/resources.hpp"
#include "transports/ucx/transport.hpp"

namespace torii::ucx {
namespace {

using tests::expect_holds;
using tests::run_ranks_as_threads;

TEST(Message, HeadersOutsideTheArenaAreNone) {
  constexpr std::size_t kArena = 4096;
  const auto is_read = [](Header header, std::size_t payload_bytes) {
    return read_put(&header, sizeof(header), payload_bytes, kArena).has_value();
  };
  EXPECT_TRUE(is_read({0, 4088, 1}, 4096));
  EXPECT_TRUE(is_read({UINT64_MAX, 0, 1}, 0)) << "without payload there is no target";
  EXPECT_FALSE(is_read({1, 0, 1}, 4096));
  EXPECT_FALSE(is_read({UINT64_MAX, 0, 1}, 8));
  EXPECT_FALSE(is_read({0, 4096, 1}, 8));
  EXPECT_FALSE(is_read({0, 4, 1}, 8)) << "a signal is an aligned word";
  EXPECT_FALSE(is_read({0, UINT64_MAX - 7, 1}, 8));
  EXPECT_FALSE(is_read({0, 0, 1}, SIZE_MAX));
  const Header header = {0, 0, 3};
  EXPECT_FALSE(read_put(&header, sizeof(header) - 1, 0, kArena));
  EXPECT_EQ(read_sender(&header, sizeof(header), 4), 3);
  EXPECT_EQ(read_sender(&header, sizeof(header), 3), -1);
  EXPECT_EQ(read_sender(&header, 8, 4), -1);
  const Header of_peer = {0, 0, 3, 42};
  EXPECT_TRUE(knows(&of_peer, sizeof(of_peer), 42));
  EXPECT_FALSE(knows(&of_peer, sizeof(of_peer), 43));
  EXPECT_FALSE(knows(&of_peer, sizeof(of_peer) - 1, 42));
}

TEST(Message, SurvivesEveryHeaderAndCard) {
  const std::string whole = write_card({42, 43, "address", "key", "row"});
  const auto card = read_card(whole);
  ASSERT_TRUE(card);
  EXPECT_EQ(card->key_base, 42u);
  EXPECT_EQ(card->secret, 43u);
  EXPECT_EQ(card->address, "address");
  EXPECT_EQ(card->key, "key");
  EXPECT_EQ(card->row, "row");
  for (const tests::Seed& seed : tests::seeds_of("fabric_ucx", 1)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed.value);
    for (int i = 0; i < 100'000; ++i) {
      const std::size_t arena_bytes = 64 * (random() % 100);
      const Header header = {random() >> random() % 64, random() >> random() % 64, random()};
      const std::size_t payload_bytes = random() >> random() % 64;
      if (const auto read =
              read_put(&header, random() % 8 == 0 ? random() % 64 : sizeof(header), payload_bytes, arena_bytes)) {
        ASSERT_LE(read->signal_offset + 8, arena_bytes);
        ASSERT_TRUE(payload_bytes == 0 ||
                    (payload_bytes <= arena_bytes && read->target_offset <= arena_bytes - payload_bytes));
      }
      std::string bent = whole.substr(0, random() % (whole.size() + 1));
      for (int change = 0; change < 3 && !bent.empty(); ++change)
        bent[random() % bent.size()] = static_cast<char>(random());
      if (const auto read = read_card(bent)) {
        ASSERT_EQ(32 + read->address.size() + read->key.size() + read->row.size(), bent.size());
        ASSERT_FALSE(read->address.empty());
      }
    }
  }
}

/// A peer that believes in a larger arena writes nothing outside, and stops the engines with a sentence.
TEST(Message, FromAPeerThatWritesBeyondTheArena) {
  constexpr std::size_t kPage = 4096;
  run_ranks_as_threads(2, [&](Bootstrap& bootstrap) {
    std::vector<std::byte> memory(16 * kPage);
    transports::PeerStates peers(2, 1);
    transports::Sleepers sleepers;
    const std::size_t arena_bytes = bootstrap.rank() == 0 ? 8 * kPage : kPage;
    const Shared shared = {memory.data(), arena_bytes, bootstrap.rank(), 2, peers, sleepers};
    const Manner manner = {.puts = false, .peer_errors = true, .wakes = false};
    Engine engine(std::make_shared<Device>(find_selections("tcp", {"127.0.0.1"}).at(0), manner, 2), 0, shared);
    engine.connect(gather_texts(bootstrap, engine.card()));
    if (bootstrap.rank() == 0) {
      EXPECT_EQ(engine.put_word(1, 2 * kPage, 1), Status::ok);
    }
    for (int time = 0; time < 2000 && peers.status() == Status::ok; ++time) {
      engine.progress();
      usleep(1000);
      if (bootstrap.rank() == 0 && time == 500) break;
    }
    if (bootstrap.rank() == 1) {
      EXPECT_EQ(peers.status(), Status::transport);
      expect_holds(peers.text(), "engine 0 (UCX tcp on lo) got a message that no rank sends");
      EXPECT_TRUE(std::ranges::all_of(memory, [](std::byte each) { return each == std::byte{0}; }));
    }
    gather_values(bootstrap, 0);
  });
}

TEST(UcxProviders, SelectTheDevicesOfAnInterface) {
  const std::vector<Resource> all = {{"tcp", "tcp", "lo", true, {}},           {"tcp", "tcp", "eth10", true, {}},
                                     {"tcp", "tcp", "eth1", true, {}},         {"ib", "rc_mlx5", "mlx5_0:1", true, {}},
                                     {"ib", "ud_verbs", "mlx5_0:1", true, {}}, {"posix", "posix", "memory", false, {}}};
  const auto selected = [&](const std::string& provider, const std::vector<std::string>& interfaces) {
    std::vector<Selection> selections;
    const std::string reason = select(all, provider, interfaces, selections);
    std::string text = reason;
    for (const Selection& each : selections) text += "[" + each.transports + " on " + each.devices + "]";
    return text;
  };
  EXPECT_EQ(selected("tcp", {""}), "[tcp on eth10]") << "not the loopback";
  EXPECT_EQ(selected("tcp", {"eth1", "lo"}), "[tcp on eth1][tcp on lo]");
  EXPECT_EQ(selected("ib", {""}), "[ib on mlx5_0:1]");
  EXPECT_EQ(selected("rc;ud", {""}), "[rc,ud on mlx5_0:1]");
  EXPECT_EQ(selected("rc;tcp", {""}), "[rc,tcp on mlx5_0:1,eth10]");
  EXPECT_EQ(selected("posix", {"eth1"}), "[posix on ]");
  EXPECT_EQ(selected("tcp", {"wlan0"}), "its transport 'tcp' has no device on interface wlan0");
  // A reliable transport with the unreliable one by which it connects.
  EXPECT_EQ(selected("rc_mlx5;ud_verbs", {""}), "[rc_x,ud_verbs on mlx5_0:1]");
  EXPECT_EQ(selected("dc", {""}),
            "this UCX has no transport 'dc', or none that finds its device or is allowed to use it");
}

TEST(UcxProviders, SeeForWhichDevicesUcxHasNoTransportsOfItsOwn) {
  const std::vector<Resource> all = {{"tcp", "tcp", "eth0", true, {}},
                                     {"ib", "rc_verbs", "mlx5_0:1", true, {}},
                                     {"ib", "rc_mlx5", "mlx5_0:1", true, {}},
                                     {"ib", "ud_verbs", "eth1", true, {}}};
  const auto is_plain = [&](const std::string& provider, const std::string& interface) {
    std::vector<Selection> selections;
    EXPECT_EQ(select(all, provider, {interface}, selections), "");
    return selections.at(0).is_plain_verbs;
  };
  EXPECT_FALSE(is_plain("tcp", "eth0"));
  EXPECT_FALSE(is_plain("rc_verbs", ""));
  EXPECT_TRUE(is_plain("ud", "eth1"));
}

TEST(UcxProviders, ThoseOfDevicesPinMemory) {
  Selection selection;
  for (const char* const component : {"tcp", "posix", "sysv", "cma"}) selection.components.emplace_back(component);
  EXPECT_FALSE(pins_memory(selection));
  selection.components.emplace_back("ib");
  EXPECT_TRUE(pins_memory(selection));
}

TEST(UcxProviders, EachIsUsableOrSaysWhyNot) {
  const std::vector<ProviderReport> all = list_providers({"127.0.0.1"});
  const auto find = [&](const std::string& name) { return *std::ranges::find(all, name, &ProviderReport::name); };
  for (const ProviderReport& one : all) EXPECT_TRUE(one.usable || !one.reason.empty()) << one.name;
  EXPECT_TRUE(find("tcp").usable);
  EXPECT_EQ(find("tcp").pinning, "");
  EXPECT_EQ(find("tcp").devices, std::vector<std::string>{"lo"});
  EXPECT_TRUE(find("posix").usable);
  EXPECT_FALSE(find("posix").chosen);
  EXPECT_EQ(std::ranges::count(all, true, &ProviderReport::chosen), 1);
}

/// What the choice of the way stands on: neither tcp nor memory that UCX has not allocated is reached without the
/// peer's CPU, so both take messages.
TEST(UcxProviders, AbilitiesAreAskedFor) {
  for (const std::string provider : {"tcp", "posix"}) {
    const std::vector<Selection> selections = find_selections(provider, {"127.0.0.1", "127.0.0.1"});
    ASSERT_EQ(selections.size(), 2u);
    EXPECT_TRUE(selections[1].abilities.messages) << provider;
    EXPECT_FALSE(selections[1].abilities.puts) << provider;
    EXPECT_TRUE(selections[1].abilities.peer_errors) << provider;
    EXPECT_EQ(selections[1].devices, provider == "tcp" ? "lo" : "");
  }
}

TEST(UcxRefusal, NamesTheRankAndTheCause) {
  const auto refused = [](const std::string& provider) {
    return tests::refusal<UcxTransport, Options>([&](int, Options& options) { options.provider = provider; },
                                                 Status::unsupported);
  };
  expect_holds(refused("tpc"), "rank 0 cannot use TORII_PROVIDER 'tpc': this UCX has no transport 'tpc'");
  expect_holds(refused("tpc"), "ucx_info -d lists what there is");
  expect_holds(refused("posix;tpc"), "this UCX has no transport 'tpc'");
  expect_holds(refused(";"), "it names no transport");
  expect_holds(refused("cma"), "none of its transports carries active messages");
  // Every address of 127.0.0.0/8 can be bound, and belongs to no interface.
  expect_holds(tests::refusal<UcxTransport, Options>(
                   [&](int, Options& options) { options.source_addresses = {"127.0.0.5"}; }, Status::unsupported),
               "no provider is usable on all ranks");
  const auto of_address = [&](int, Options& options) {
    options.provider = "tcp";
    options.source_addresses = {"127.0.0.5"};
  };
  expect_holds(tests::refusal<UcxTransport, Options>(of_address, Status::unsupported),
               "no interface here has the address 127.0.0.5");
  tests::expect_common_refusals<UcxTransport, Options>("tcp");
}

/// A long payload is fetched after its header has come, and what is put behind it may be there before: the word that a
/// peer puts last does not say that its payloads are whole.
TEST(UcxEngines, APayloadThatIsBeingFetchedIsArriving) {
  constexpr std::size_t kBytes = std::size_t{8} << 20;
  constexpr std::uint64_t kTarget = std::uint64_t{1} << 20;
  run_ranks_as_threads(2, [&](Bootstrap& bootstrap) {
    const auto opened = tests::open_transport("ucx_tcp", bootstrap, 1);
    Transport& transport = opened->transport();
    if (bootstrap.rank() == 0) {
      const std::vector<std::byte> source(kBytes, std::byte{7});
      PutOwner owner;
      Put put;
      put.peer = 1;
      put.source = source.data();
      put.bytes = kBytes;
      put.target_offset = kTarget;
      put.signal = 1;
      put.owner = owner.count();
      EXPECT_EQ(transport.put(put), Status::ok);
      while (!owner.drained()) ASSERT_EQ(transport.progress(), Status::ok);
    } else {
      int seen = 0;
      while (load_word(opened->arena()) != 1) {
        ASSERT_EQ(transport.progress(), Status::ok);
        seen += transport.is_arriving(kTarget + kBytes - 1, 1) ? 1 : 0;
        EXPECT_FALSE(transport.is_arriving(0, kTarget));
        EXPECT_FALSE(transport.is_arriving(kTarget + kBytes, kBytes));
      }
      EXPECT_GT(seen, 0) << "the payload was there at once";
      EXPECT_FALSE(transport.is_arriving(0, tests::kArenaBytes));
    }
    gather_values(bootstrap, 0);
  });
}

TEST(UcxEngines, APeerThatLeavesIsLostAndSaidToBe) {
  run_ranks_as_threads(2, [&](Bootstrap& bootstrap) {
    auto opened = tests::open_transport("ucx_tcp", bootstrap, 2);
    Transport& transport = opened->transport();
    const int peer = 1 - bootstrap.rank();
    EXPECT_EQ(transport.put_word(peer, 0, 1), Status::ok);
    for (int time = 0; time < 5000 && load_word(opened->arena()) != 1; ++time) {
      EXPECT_EQ(transport.progress(), Status::ok);
      usleep(1000);
    }
    ASSERT_EQ(load_word(opened->arena()), 1u);
    if (bootstrap.rank() == 1) {
      opened.reset();
      gather_values(bootstrap, 0);
      return;
    }
    for (int time = 0; time < 5000 && transport.alive(1); ++time) {
      EXPECT_EQ(transport.progress(), Status::ok);
      usleep(1000);
    }
    EXPECT_FALSE(transport.alive(1));
    EXPECT_EQ(transport.put_word(1, 0, 2), Status::peer_lost);
    expect_holds(transport.failure_text(), "rank 1");
    gather_values(bootstrap, 0);
  });
}

/// Without errors of peers a connection is closed by a message, which a closed engine does not send.
TEST(UcxEngines, AClosedOneEndsWhereUcxWatchesNoPeers) {
  run_ranks_as_threads(2, [&](Bootstrap& bootstrap) {
    std::vector<std::byte> memory(4096);
    transports::PeerStates peers(2, 2);
    transports::Sleepers sleepers;
    const Shared shared = {memory.data(), memory.size(), bootstrap.rank(), 2, peers, sleepers};
    const Manner manner = {.puts = false, .peer_errors = false, .wakes = false};
    {
      Engine engine(std::make_shared<Device>(find_selections("tcp", {"127.0.0.1"}).at(0), manner, 2), 0, shared);
      engine.connect(gather_texts(bootstrap, engine.card()));
      EXPECT_EQ(engine.put_word(1 - bootstrap.rank(), 0, 1), Status::ok);
      gather_values(bootstrap, 0);
      peers.close(0);
      engine.close();
    }
    gather_values(bootstrap, 0);
  });
}

}  // namespace
}  // namespace torii::ucx
