// SPDX-License-Identifier: Apache-2.0
// Scans, garbage, half-open and slow connections at the port of rank 0 and at those of the providers, and a false
// rank 0: none of them changes anything.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fstream>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "runtime/bootstrap/wire.hpp"
#include "runtime/devices/address.hpp"
#include "tests/processes/join_job.hpp"
#include "tests/support/places.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

/// Everything that a stranger may try, from several threads at once, until it ends.
class Strangers {
 public:
  Strangers(int port, const Seed& seed) : ports_{port} {
    for (unsigned i = 0; i < 3; ++i) threads_.emplace_back([this, own = seed.value + i] { run(own); });
  }
  ~Strangers() {
    stop_ = true;
    for (std::thread& one : threads_) one.join();
  }
  int connections() const { return connections_; }
  /// From now on they try these ports in turn.
  void aim_at(std::vector<int> ports) {
    const std::lock_guard lock(mutex_);
    ports_ = std::move(ports);
  }

 private:
  int port(unsigned round) {
    const std::lock_guard lock(mutex_);
    return ports_[round % ports_.size()];
  }

  void run(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<Descriptor> kept;  // half-open and silent ones
    for (unsigned round = 0; !stop_; ++round) {
      Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const Address address = Address::parse("127.0.0.1", port(round / 6));
      if (connect(socket.get(), address.get(), address.bytes()) != 0) {
        poll(nullptr, 0, 1);
        continue;
      }
      ++connections_;
      const timeval patience = {0, 100'000};  // a listener that accepts nobody answers nothing
      setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
      act(socket.get(), round % 6, random);
      if (round % 2 == 0) kept.push_back(std::move(socket));
      if (kept.size() > 100) kept.erase(kept.begin());
    }
  }

  void act(int socket, unsigned kind, std::mt19937_64& random) {
    const auto say = [&](const void* bytes, std::size_t count) {
      return send(socket, bytes, count, MSG_NOSIGNAL) == static_cast<ssize_t>(count);
    };
    std::vector<std::uint8_t> garbage(random() % 3000);
    for (auto& one : garbage) one = static_cast<std::uint8_t>(random());
    wire::Hello hello;
    hello.rank = static_cast<int>(random() % 4);
    hello.ranks = 4;
    if (kind == 1) say(garbage.data(), garbage.size());
    if (kind == 2) say("GET / HTTP/1.1\r\n\r\n", 18);
    if (kind == 3) say(&hello, sizeof(hello));  // and never answers the challenge
    if (kind == 4 && say(&hello, sizeof(hello))) {
      wire::Challenge challenge;
      if (recv(socket, &challenge, sizeof(challenge), MSG_WAITALL) > 0) say(garbage.data(), garbage.size());
    }
    if (kind == 5) {
      // Slowly, byte by byte.
      for (std::size_t i = 0; i < sizeof(hello) && !stop_; ++i) {
        if (!say(reinterpret_cast<const char*>(&hello) + i, 1)) break;
        poll(nullptr, 0, 1);
      }
    }
  }

  std::mutex mutex_;
  std::vector<int> ports_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> connections_ = 0;
  std::vector<std::thread> threads_;
};

TEST(JoinStrangers, StartUpsSucceedAmongThem) {
  const int starts = is_full() ? 200 : 20;
  for (const Seed& seed : seeds_of("test_join_tcp/start_ups", 1)) {
    SCOPED_TRACE(seed);
    const int port = free_port();
    Strangers strangers(port, seed);
    for (int start = 0; start < starts; ++start) {
      const auto outcomes =
          run_job(4, {"gather"}, meeting_at(port) + Words{"TORII_JOB_TOKEN=secret", "TORII_TIMEOUT=20"});
      for (const Outcome& one : outcomes) ASSERT_EQ(one.code, 0) << "start " << start << ": " << one.output;
    }
    // Else the test would show nothing.
    EXPECT_GT(strangers.connections(), starts);
  }
}

#if defined(TORII_TEST_LIBFABRIC) || defined(TORII_TEST_UCX)
constexpr int kWorkers = 3;

/// A whole job over a provider, every rank on a node of its own, among strangers at each port that any of its ranks
/// listens at.
class JobAmongStrangers {
 public:
  JobAmongStrangers(const Words& environment, Strangers& strangers, int port) : strangers_(strangers), port_(port) {
    for (int rank = kWorkers - 1; rank >= 0; --rank) {
      const Words place{"RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(kWorkers),
                        "TORII_NODE=node" + std::to_string(rank)};
      ranks_.push_back(std::make_unique<Process>(Words{helper("failure_rank"), "work", "0", "15000000"},
                                                 meeting_at(port) + place + environment));
    }
  }

  /// The job ends when strangers know a port of each rank's provider and have had time there, or after 15 s. Returns
  /// whether they have.
  bool run() {
    const int connections_before = strangers_.connections();
    while (std::ranges::any_of(ranks_, [](const auto& one) { return is_running(one->pid()); })) {
      std::set<int> ports = {port_};
      for (const auto& one : ranks_) {
        for (const Listener& each : listeners_of(one->pid())) {
          EXPECT_EQ(each.address, "0100007F") << "port " << each.port;  // 127.0.0.1, and never every interface
          ports.insert(each.port);
          if (each.port != port_) provider_ports_.insert(each.port);
        }
      }
      strangers_.aim_at({ports.begin(), ports.end()});
      if (have_come_since(connections_before)) kill(ranks_.back()->pid(), SIGUSR1);  // rank 0
      usleep(2000);
    }
    for (const auto& one : ranks_) {
      const Outcome outcome = one->wait();
      EXPECT_EQ(outcome.code, 0) << outcome.output;
      EXPECT_TRUE(holds(outcome.output, "has worked")) << outcome.output;
    }
    return have_come_since(connections_before);
  }

 private:
  bool have_come_since(int connections_before) const {
    constexpr int kEnough = 20;
    return provider_ports_.size() >= static_cast<std::size_t>(kWorkers) &&
           strangers_.connections() >= connections_before + kEnough;
  }
  static bool is_running(pid_t pid) {
    std::string skipped;
    std::string state;
    std::ifstream("/proc/" + std::to_string(pid) + "/stat") >> skipped >> skipped >> state;
    return !state.empty() && state != "Z";
  }

  Strangers& strangers_;
  int port_;
  std::vector<std::unique_ptr<Process>> ranks_;
  std::set<int> provider_ports_;
};

TEST(JoinStrangers, WholeJobsSucceedAmongThemOnEveryProvider) {
  const std::vector<Words> providers = {
#ifdef TORII_TEST_LIBFABRIC
      {"TORII_TRANSPORT=libfabric", "TORII_PROVIDER=net"},
      {"TORII_TRANSPORT=libfabric", "TORII_PROVIDER=tcp;ofi_rxm"},
#endif
#ifdef TORII_TEST_UCX
      {"TORII_TRANSPORT=ucx", "TORII_PROVIDER=tcp"},
#endif
  };
  for (const Words& provider : providers) {
    SCOPED_TRACE(provider[0] + " " + provider[1]);
    for (const Seed& seed : seeds_of("test_join_tcp/whole_jobs", is_full() ? 200 : 2)) {
      if (HasFailure()) return;
      SCOPED_TRACE(seed);
      const int port = free_port();
      Strangers strangers(port, seed);
      JobAmongStrangers job(provider + Words{"TORII_JOB_TOKEN=secret", "TORII_TIMEOUT=20", "TORII_INTERFACE==lo",
                                             "TORII_ENGINES=2", "TORII_ARENA=1G"},
                            strangers, port);
      EXPECT_TRUE(job.run()) << "the strangers have not found it";
    }
  }
}
#endif

TEST(JoinStrangers, AWrongTokenIsRefusedAmongThem) {
  for (const Seed& seed : seeds_of("test_join_tcp/wrong_token", 1)) {
    SCOPED_TRACE(seed);
    const int port = free_port();
    Strangers strangers(port, seed);
    const Words common = meeting_at(port) + Words{"TORII_TIMEOUT=1.5"};
    const auto zero = start_rank(0, 2, {"gather"}, common + Words{"TORII_JOB_TOKEN=right"});
    const Outcome refused = start_rank(1, 2, {"gather"}, common + Words{"TORII_JOB_TOKEN=wrong"})->wait();
    EXPECT_EQ(refused.code, 3) << refused.output;
    EXPECT_TRUE(holds(refused.output, "refused rank 1: their job tokens (TORII_JOB_TOKEN) differ")) << refused.output;
    const Outcome refuser = zero->wait();
    EXPECT_TRUE(holds(refuser.output, "a connection as rank 1 was refused: its job token differs")) << refuser.output;
  }
}

TEST(JoinStrangers, NoMoreConnectionsAreHeldThanAllowed) {
  const int port = free_port();
  const auto zero = start_rank(0, 2, {"gather"}, meeting_at(port) + Words{"TORII_TIMEOUT=20"});
  ASSERT_TRUE(wait_for_listener(port));
  const Address address = Address::parse("127.0.0.1", port);
  std::vector<Descriptor> held;
  constexpr int kConnections = 200;
  for (int i = 0; i < kConnections; ++i) {
    held.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(held.back().get(), address.get(), address.bytes()), 0);
  }
  // Silent ones beyond 64 and one per rank are dropped, the oldest first.
  constexpr int kHeldMost = 64 + 2;
  int dropped = 0;
  for (const double end_s = now_s() + 4; dropped < kConnections - kHeldMost && now_s() < end_s; usleep(1000)) {
    dropped = 0;
    char nothing = 0;
    for (const Descriptor& one : held) dropped += recv(one.get(), &nothing, 1, MSG_DONTWAIT) == 0 ? 1 : 0;
  }
  EXPECT_EQ(dropped, kConnections - kHeldMost);
  EXPECT_EQ(start_rank(1, 2, {"gather"}, meeting_at(port))->wait().code, 0);
  EXPECT_EQ(zero->wait().code, 0);
}

/// A rank of another version, whose messages may be shorter, learns the version and is dropped.
TEST(JoinStrangers, AnotherVersionIsToldBeforeItsHelloIsWhole) {
  const int port = free_port();
  const auto zero = start_rank(0, 2, {"gather"}, meeting_at(port) + Words{"TORII_TIMEOUT=20"});
  ASSERT_TRUE(wait_for_listener(port));
  const Address address = Address::parse("127.0.0.1", port);
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(socket.get(), address.get(), address.bytes()), 0);
  wire::Hello older;
  older.version = 1;
  constexpr std::size_t kOlderBytes = 48;
  ASSERT_EQ(send(socket.get(), &older, kOlderBytes, MSG_NOSIGNAL), static_cast<ssize_t>(kOlderBytes));
  wire::Challenge challenge;
  ASSERT_EQ(recv(socket.get(), &challenge, sizeof(challenge), MSG_WAITALL), static_cast<ssize_t>(sizeof(challenge)));
  EXPECT_EQ(challenge.version, wire::kVersion);
  char nothing = 0;
  EXPECT_EQ(recv(socket.get(), &nothing, 1, 0), 0);
  EXPECT_EQ(start_rank(1, 2, {"gather"}, meeting_at(port))->wait().code, 0);
  EXPECT_EQ(zero->wait().code, 0);
}

TEST(JoinStrangers, SilentOnesAreDroppedAfterTheirTime) {
  const int port = free_port();
  const auto zero = start_rank(0, 2, {"gather"}, meeting_at(port) + Words{"TORII_TIMEOUT=20"});
  ASSERT_TRUE(wait_for_listener(port));
  const Address address = Address::parse("127.0.0.1", port);
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(socket.get(), address.get(), address.bytes()), 0);
  pollfd entry{socket.get(), POLLIN, 0};
  EXPECT_EQ(poll(&entry, 1, 9000), 1);
  char nothing = 0;
  EXPECT_EQ(recv(socket.get(), &nothing, 1, 0), 0);
}

/// What listens at the port of rank 0, and is not it: answers every connection with `answer`.
std::string output_with_false_rank_0(const std::string& answer) {
  const Descriptor listener = listen_on(Address::parse("127.0.0.1", 0), {}, 16);
  const int port = Address::of_socket(listener.get()).port();
  std::atomic<bool> stop = false;
  std::thread server([&] {
    while (!stop) {
      pollfd entry{listener.get(), POLLIN, 0};
      if (poll(&entry, 1, 10) <= 0) continue;
      const Descriptor socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (send(socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL) < 0) continue;
      wire::Hello hello;
      while (recv(socket.get(), &hello, sizeof(hello), 0) > 0 && answer.size() > sizeof(wire::Challenge)) {
      }
    }
  });
  const Outcome outcome =
      start_rank(1, 2, {"gather"}, meeting_at(port) + Words{"TORII_TIMEOUT=0.5", "TORII_JOB_TOKEN=secret"})->wait();
  stop = true;
  server.join();
  return outcome.output;
}

TEST(JoinStrangers, AFalseRank0IsNotBelieved) {
  const auto text = [](const auto& message) {
    return std::string(reinterpret_cast<const char*>(&message), sizeof(message));
  };
  const auto expect = [](const std::string& answer, const std::string& told) {
    const std::string output = output_with_false_rank_0(answer);
    EXPECT_TRUE(holds(output, told)) << output;
  };
  const char* const no_answer = "does not answer as rank 0 of a job does";
  expect("220 mail ready\r\n", no_answer);
  expect(std::string(5000, 'x'), no_answer);
  const wire::Challenge challenge;
  expect(text(challenge), no_answer);
  wire::Challenge newer;
  newer.version = 9;
  expect(text(newer), "joins by protocol 9 and rank 1 by " + std::to_string(wire::kVersion));
  wire::Challenge refusal;
  refusal.refusal = wire::Refusal::token;
  expect(text(refusal), "refused rank 1: their job tokens (TORII_JOB_TOKEN) differ");
  wire::Verdict verdict;
  expect(text(challenge) + text(verdict), "accepted rank 1 without knowing its job token");
}

}  // namespace
}  // namespace torii::tests
