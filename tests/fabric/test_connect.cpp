// SPDX-License-Identifier: Apache-2.0
// Connecting while a transport is made: whoever puts afterwards needs no peer to be in a call, and a rank that is
// missing is named on all ranks.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "runtime/fabric/waiting.hpp"
#include "runtime/fabric/words.hpp"
#include "tests/fabric/refusal.hpp"
#include "tests/fabric/scenarios.hpp"
#include "tests/fabric/transports.hpp"
#include "tests/support/test_run.hpp"
#include "tests/support/thread_ranks.hpp"
#include "transports/network/engine_transport.hpp"
#include "transports/network/failures.hpp"

namespace torii::tests {
namespace {

/// The very first put over each engine, to peers that stay away from the transport until its source is free again.
TEST(Connecting, APutWaitsForNobodyWhoIsInNoCall) {
  for (const std::string& name : transport_names()) {
    if (!obstacle(name).empty()) continue;
    if (is_imposed(name) && !is_full()) continue;
    std::barrier<> free_again(3);
    run_ranks_as_threads(3, [&](Bootstrap& bootstrap) {
      const auto opened = open_transport(name, bootstrap, 2);
      Transport& transport = opened->transport();
      gather_values(bootstrap, 0);
      if (bootstrap.rank() == 1) {
        const Stage stage(transport, opened->arena(), 1);
        std::byte* const source = opened->arena() + (std::uint64_t{1} << 20);
        try {
          for (int engine = 0; engine < 2; ++engine) {
            for (const int peer : {0, 2}) {
              const auto at = std::uint64_t{4096} * static_cast<std::uint64_t>(1 + engine);
              stage.expect(transport.put({peer, engine, source, at + 64, 1000, at, 7}), "a first put");
            }
          }
          stage.await("drained", [&] { return transport.drained(); });
        } catch (const std::exception& error) {
          ADD_FAILURE() << name << ": " << error.what();
        }
      }
      free_again.arrive_and_wait();
      gather_values(bootstrap, 0);  // mappings of threads stay until all are done
    });
  }
}

/// Whoever asks after a peer that is in no call goes on with the others: shm completes in the order of starting.
TEST(Connecting, AskingAfterAPeerInNoCallHoldsUpNobody) {
  for (const std::string& name : transport_names()) {
    if (name != "shm" && name != "net") continue;
    std::barrier<> done(3);
    run_ranks_as_threads(3, [&](Bootstrap& bootstrap) {
      const auto opened = open_transport(name, bootstrap, 1);
      Transport& transport = opened->transport();
      const Stage stage(transport, opened->arena(), 1);
      constexpr std::uint64_t kPuts = 4;
      constexpr std::size_t kBytes = 100'000;  // more than a provider copies for its own
      gather_values(bootstrap, 0);
      try {
        if (bootstrap.rank() == 0) {
          stage.expect(transport.put_word(1, 64, 1), "a word");
          stage.await("drained", [&] { return transport.drained(); });
          EXPECT_TRUE(transport.alive(1));
          for (std::uint64_t number = 1; number <= kPuts; ++number) {
            // A slot of its own for each: nobody says that one is free again.
            const std::uint64_t payload_offset = number * (std::uint64_t{1} << 17);
            stage.expect(transport.put({2, 0, opened->arena() + 4096, payload_offset, kBytes, 64 * number, 1}),
                         "a put");
            stage.await("drained", [&] { return transport.drained(); });
          }
        } else if (bootstrap.rank() == 2) {
          for (std::uint64_t number = 1; number <= kPuts; ++number) {
            stage.await("puts", [&] { return load_word(opened->arena() + 64 * number) == 1; });
          }
        }
      } catch (const std::exception& error) {
        ADD_FAILURE() << name << ": " << error.what();
      }
      done.arrive_and_wait();
      gather_values(bootstrap, 0);
    });
  }
}

std::size_t open_files() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// A rank that was in no call for long was asked by its peer's host whether it still listens. Nothing of that stays
/// with it: libfabric's tcp would keep a connection that was closed without a word, and with it a descriptor that is
/// always readable, so that the rank could not sleep any more.
TEST(Connecting, BeingAskedLeavesNothingBehind) {
  const std::string name = "tcp;ofi_rxm";
  const std::vector<std::string> names = transport_names();
  if (std::ranges::find(names, name) == names.end()) GTEST_SKIP() << "this build has no libfabric";
  if (const std::string why = obstacle(name); !why.empty()) GTEST_SKIP() << why;
  std::barrier<> both(2);
  run_ranks_as_threads(2, [&](Bootstrap& bootstrap) {
    const auto opened = open_transport(name, bootstrap, 1);
    Transport& transport = opened->transport();
    const Stage stage(transport, opened->arena(), 1);
    const auto go_on = [&](int ms) {
      const std::int64_t end_ns = now_ns() + ms * std::int64_t{1'000'000};
      while (now_ns() < end_ns) {
        errno = EAGAIN;  // what the last look at a socket mostly leaves there
        EXPECT_EQ(transport.progress(), Status::ok);
        EXPECT_TRUE(bootstrap.rank() != 0 || transport.alive(1));
        usleep(1000);
      }
    };
    if (bootstrap.rank() == 0) {
      stage.expect(transport.put_word(1, 64, 1), "a word");
      stage.await("drained", [&] { return transport.drained(); });
    }
    go_on(100);
    both.arrive_and_wait();
    // One rank counts, while the other waits: to look at the folder opens a file, and both are one process.
    const std::size_t before = bootstrap.rank() == 1 ? open_files() : 0;
    both.arrive_and_wait();
    if (bootstrap.rank() == 0) go_on(700);  // asks after 200 ms and after 400 more
    both.arrive_and_wait();
    if (bootstrap.rank() == 1) {
      go_on(200);
      EXPECT_EQ(open_files(), before);
      const std::int64_t begun_ns = now_ns();
      transport.sleep_once(
          50'000, [](void*) { return true; }, nullptr);
      EXPECT_GT(now_ns() - begun_ns, 30'000'000) << "something woke it";
    }
    both.arrive_and_wait();
    gather_values(bootstrap, 0);
  });
}

/// An engine that hears of all peers but one.
struct PlayedEngine {
  int silent = -1;
  std::vector<int> greeted;
  bool leaves = true;
  int looks = 0;
  bool has_some = false;
  int puts = 0;
  std::vector<int> doubted;
  int left = -1;
  bool closed = false;

  void greet(int peer) noexcept { greeted.push_back(peer); }
  bool is_greeted(int peer) const noexcept { return peer != silent; }
  bool drained() const noexcept { return leaves; }
  bool progress() noexcept {
    ++looks;
    return has_some;
  }
  Status put(const Put&) noexcept {
    ++puts;
    return Status::ok;
  }
  Status put_word(int, std::uint64_t, std::uint64_t) noexcept {
    ++puts;
    return Status::ok;
  }
  bool probe(int, std::int64_t) noexcept { return true; }
  void take_leave(int) noexcept {}
  bool has_left(int peer) const noexcept { return peer == left; }
  void doubt(int peer, std::int64_t) noexcept { doubted.push_back(peer); }
  void close() noexcept { closed = true; }
  int wait_descriptor() const noexcept { return -1; }
  bool may_sleep(int&) noexcept { return true; }
  void flush() noexcept {}
  bool confirmed() const noexcept { return true; }
};

class Played final : public transports::EngineTransport<PlayedEngine> {
 public:
  explicit Played(Bootstrap& bootstrap) : EngineTransport(bootstrap, two_engines()) {
    for (int i = 0; i < 2; ++i) engines_.push_back(std::make_unique<PlayedEngine>());
  }
  static transports::EngineOptions two_engines() {
    transports::EngineOptions options;
    options.engines = 2;
    return options;
  }
  PlayedEngine& engine(int number) { return *engines_[static_cast<std::size_t>(number)]; }
  transports::PeerStates& peers() { return peers_; }
  void connect(Bootstrap& bootstrap, const transports::EngineOptions& options) { connect_all(bootstrap, options); }
};

/// What four ranks throw, all alike, when `spoil` has changed the transport of one.
std::string refused(Status status, int missing, const std::function<void(int rank, Played& transport)>& spoil) {
  std::vector<std::string> texts(4);
  run_ranks_as_threads(4, [&](Bootstrap& bootstrap) {
    Played transport(bootstrap);
    spoil(bootstrap.rank(), transport);
    transports::EngineOptions options;
    options.timeout_s = 0.05;
    try {
      transport.connect(bootstrap, options);
      ADD_FAILURE() << "rank " << bootstrap.rank() << " has connected";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), status);
      EXPECT_EQ(error.rank(), missing);
      texts[static_cast<std::size_t>(bootstrap.rank())] = error.what();
    }
  });
  for (const std::string& text : texts) EXPECT_EQ(text, texts[0]);
  return texts[0];
}

TEST(Connecting, NamesWhoIsMissing) {
  expect_holds(refused(Status::timeout, 1,
                       [](int rank, Played& transport) {
                         if (rank == 1) transport.engine(1).silent = 2;
                       }),
               "rank 1: has not heard of rank 2 over every engine within 50 ms");
  expect_holds(refused(Status::timeout, 3,
                       [](int rank, Played& transport) {
                         if (rank == 3) transport.engine(0).leaves = false;
                       }),
               "rank 3: its greetings have not left for its peers within 50 ms");
  expect_holds(refused(Status::peer_lost, 0,
                       [](int rank, Played& transport) {
                         if (rank == 0) transport.peers().lose(3, "its cable is cut");
                       }),
               "rank 0: rank 3 was lost while all connect: its cable is cut");
  expect_holds(refused(Status::transport, 2,
                       [](int rank, Played& transport) {
                         if (rank == 2) transport.peers().break_down("no device left");
                       }),
               "rank 2: cannot connect to its peers: no device left");
}

TEST(Connecting, GreetsOtherNodesOnly) {
  run_ranks_as_threads(4, [](Bootstrap& bootstrap) {
    Played transport(bootstrap);
    transports::EngineOptions options;
    options.nodes = {0, 0, 1, 0};
    transport.connect(bootstrap, options);
    const bool alone = bootstrap.rank() == 2;
    for (int engine = 0; engine < 2; ++engine) {
      EXPECT_EQ(transport.engine(engine).greeted, alone ? (std::vector{3, 0, 1}) : std::vector{2});
    }
  });
}

/// Which failures are losses of the peer, and whether other engines may still reach it.
TEST(Engines, FailForOnePeerOrForAll) {
  transports::PeerStates peers(3, 2);
  const transports::EngineFailures failures(peers, 1, "a device");
  EXPECT_EQ(failures.fail_write(2, 8, "it has gone", true), Status::peer_lost);
  EXPECT_EQ(peers.text(), "engine 1 (a device): a write of 8 bytes to rank 2 failed: it has gone");
  EXPECT_TRUE(failures.is_cut(2));
  EXPECT_FALSE(peers.is_lost(2)) << "the other engine may reach it";
  EXPECT_EQ(failures.fail_write(2, 8, "anything", false), Status::peer_lost) << "as all that is under way to it";
  EXPECT_FALSE(peers.is_broken());
  const transports::EngineFailures unasked(peers, 0, "a device", false);
  EXPECT_EQ(unasked.fail_write(1, 8, "it has gone", true), Status::peer_lost);
  EXPECT_TRUE(peers.is_lost(1)) << "nobody asks the other engine";
  EXPECT_EQ(unasked.fail_write(0, 8, "too long", false), Status::transport);
  EXPECT_TRUE(peers.is_broken());
}

TEST(Engines, SayWhatEndedThem) {
  const auto text_of = [](const auto& happen) {
    transports::PeerStates peers(2, 1);
    happen(transports::EngineFailures(peers, 0, "a device"));
    return peers.text();
  };
  EXPECT_EQ(text_of([](const auto& it) { it.end_connection(1, "reset"); }),
            "engine 0 (a device): the connection to rank 1 ended: reset");
  EXPECT_EQ(text_of([](const auto& it) { it.break_down("cannot go on"); }), "engine 0 (a device) cannot go on");
  EXPECT_EQ(text_of([](const auto& it) { it.break_down("cannot go on", "no room"); }),
            "engine 0 (a device) cannot go on: no room");
}

TEST(Engines, AreLostWhereThePeerAnswersThroughAnother) {
  run_ranks_as_threads(3, [](Bootstrap& bootstrap) {
    Played transport(bootstrap);
    transports::PeerStates& peers = transport.peers();
    const int peer = (bootstrap.rank() + 1) % 3;
    peers.cut(1, peer, "a cable is cut");
    EXPECT_TRUE(peers.is_cut(1, peer));
    EXPECT_FALSE(peers.is_cut(0, peer));
    EXPECT_EQ(transport.progress(), Status::ok) << "not known yet: the engine or the peer";
    EXPECT_TRUE(transport.alive(peer));
    EXPECT_EQ(transport.engine(0).doubted, std::vector{peer});
    peers.answered(peer);
    EXPECT_EQ(transport.progress(), Status::transport);
    EXPECT_EQ(transport.failure_text(), "a cable is cut");
    EXPECT_EQ(transport.lost_engines(), 2U);
    // The other engine goes on meanwhile, and carries what the lost one did when that is closed.
    const Put put = {.peer = peer, .engine = 1};
    EXPECT_EQ(transport.put({.peer = peer, .engine = 0}), Status::ok);
    transport.close_engines(2);
    EXPECT_TRUE(transport.engine(1).closed);
    EXPECT_FALSE(transport.engine(0).closed);
    EXPECT_EQ(transport.closed_engines(), 2U);
    EXPECT_EQ(transport.lost_engines(), 0U);
    EXPECT_EQ(transport.progress(), Status::ok);
    EXPECT_EQ(transport.failure_text(), "");
    const int before = transport.engine(0).puts;
    EXPECT_EQ(transport.put(put), Status::ok);
    EXPECT_EQ(transport.put_word(peer, 8, 1), Status::ok);
    EXPECT_EQ(transport.engine(0).puts, before + 2);
    EXPECT_EQ(transport.engine(1).puts, 0);
  });
}

TEST(Engines, PeersAreLostWhereNoneReachesThem) {
  run_ranks_as_threads(3, [](Bootstrap& bootstrap) {
    Played transport(bootstrap);
    const int peer = (bootstrap.rank() + 1) % 3;
    const int other = (bootstrap.rank() + 2) % 3;
    transport.peers().cut(1, peer, "first");
    transport.peers().cut(0, peer, "second");
    EXPECT_FALSE(transport.alive(peer));
    EXPECT_TRUE(transport.alive(other));
    transport.peers().answered(peer);  // too late: an answer that was under way when the last engine was cut
    EXPECT_EQ(transport.lost_engines(), 0U);
    EXPECT_EQ(transport.progress(), Status::ok);
    EXPECT_EQ(transport.failure_text(), "first");
    // A closed engine reaches nobody, so one that is cut is enough.
    transport.close_engines(1);
    EXPECT_TRUE(transport.alive(other));
    transport.peers().cut(1, other, "third");
    EXPECT_FALSE(transport.alive(other));
  });
}

/// Who leaves closes one engine after the other, and that is no loss of an engine.
TEST(Engines, AreNotLostWhereThePeerHasLeft) {
  run_ranks_as_threads(3, [](Bootstrap& bootstrap) {
    Played transport(bootstrap);
    const int peer = (bootstrap.rank() + 1) % 3;
    transport.engine(1).left = peer;
    EXPECT_TRUE(transport.alive(peer)) << "nothing is wrong yet";
    transport.peers().cut(0, peer, "refused");
    EXPECT_FALSE(transport.alive(peer));
    EXPECT_EQ(transport.engine(1).doubted, std::vector<int>{});
    EXPECT_EQ(transport.progress(), Status::ok);
  });
}

TEST(Engines, QuietOnesAreLookedAtInTurn) {
  run_ranks_as_threads(2, [](Bootstrap& bootstrap) {
    Played transport(bootstrap);
    const auto looks_in = [&](int rounds) {
      std::vector<int> looks;
      for (int engine = 0; engine < 2; ++engine) looks.push_back(-transport.engine(engine).looks);
      for (int i = 0; i < rounds; ++i) (void)transport.progress();
      for (int engine = 0; engine < 2; ++engine)
        looks[static_cast<std::size_t>(engine)] += transport.engine(engine).looks;
      return looks;
    };
    transport.engine(0).has_some = true;
    (void)looks_in(20);
    EXPECT_EQ(looks_in(40), (std::vector{40, 10})) << "engine 1 is quiet";
    Put put;
    put.peer = 1 - bootstrap.rank();
    put.engine = 1;
    EXPECT_EQ(transport.put(put), Status::ok);
    EXPECT_EQ(looks_in(4), (std::vector{4, 4})) << "something is under way there";
    transport.engine(0).has_some = false;
    (void)looks_in(20);
    EXPECT_EQ(looks_in(8), (std::vector{6, 2})) << "both are quiet, and engine 0 brought something last";
    transport.sleep_once(
        1, [](void*) { return true; }, nullptr);
    EXPECT_EQ(looks_in(4), (std::vector{4, 4})) << "whatever ended the sleep";
  });
}

}  // namespace
}  // namespace torii::tests
