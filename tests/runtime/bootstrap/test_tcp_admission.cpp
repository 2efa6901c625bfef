// SPDX-License-Identifier: Apache-2.0
// Rank 0's side of joining, in this process: messages that are changed, cut, mixed or made up admit nobody.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cstring>
#include <future>
#include <random>
#include <string>

#include "runtime/base/log.hpp"
#include "runtime/base/status.hpp"
#include "runtime/bootstrap/tcp.hpp"
#include "tests/support/test_run.hpp"

namespace torii {
namespace {

constexpr int kAdmittedRanks = 3;

template <class Message>
std::string text_of(const Message& message) {
  return {reinterpret_cast<const char*>(&message), sizeof(message)};
}

/// Rank 0 of a job, in a thread of its own.
class Admitting {
 public:
  Admitting() {
    std::vector<Descriptor> listeners;
    listeners.push_back(listen_on(Address::parse("127.0.0.1", 0), {}, queue_length(kAdmittedRanks)));
    address_ = Address::of_socket(listeners[0].get());
    links_ = std::async(std::launch::async, [this, all = std::move(listeners)]() mutable {
      return admit_ranks({0, kAdmittedRanks, 60}, std::move(all), key_);
    });
  }

  const wire::Key& key() const { return key_; }
  const Address& address() const { return address_; }
  bool is_done() const { return links_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }

  /// A frame of each rank arrives at rank 0, and a frame of rank 0 at each rank.
  void expect_ranks_join() {
    const auto dial = [this](int rank) {
      const DialPlan plan{[this](std::string&) { return Rendezvous{{address_}, key_}; }, true};
      return dial_rank_0({rank, kAdmittedRanks, 30}, plan);
    };
    std::vector<TcpLink> own;
    for (int rank = 1; rank < kAdmittedRanks; ++rank) own.push_back(dial(rank));
    std::vector<TcpLink> links = links_.get();
    ASSERT_EQ(links.size(), static_cast<std::size_t>(kAdmittedRanks));
    for (std::size_t rank = 1; rank < links.size(); ++rank) {
      expect_frame(own[rank - 1], links[rank], "of rank " + std::to_string(rank));
      expect_frame(links[rank], own[rank - 1], "of rank 0");
    }
  }

 private:
  static void expect_frame(const TcpLink& from, TcpLink& to, const std::string& payload) {
    wire::FrameHead head;
    head.bytes = payload.size();
    const std::string frame =
        text_of(head) + payload + text_of(wire::seal(from.send_key, head, std::as_bytes(std::span(payload))));
    ASSERT_EQ(send(from.socket.get(), frame.data(), frame.size(), MSG_NOSIGNAL), static_cast<ssize_t>(frame.size()));
    for (Received received = Received::nothing_yet; received != Received::some;) {
      pollfd entry{to.socket.get(), POLLIN, 0};
      ASSERT_EQ(poll(&entry, 1, 10'000), 1);
      received = receive_frame(to);
      ASSERT_NE(received, Received::closed);
    }
    const auto got = to.reader.payload();
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(got.data()), got.size()), payload);
  }

  wire::Key key_ = wire::job_key("secret");
  Address address_ = Address::parse("127.0.0.1", 0);
  std::future<std::vector<TcpLink>> links_;
};

/// One connection of a stranger, who hears what a rank says but does not know the key.
class Stranger {
 public:
  Stranger(const Admitting& rank_0, std::mt19937_64& random)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), random_(random) {
    if (connect(socket_.get(), rank_0.address().get(), rank_0.address().bytes()) != 0) socket_ = Descriptor();
    const int yes = 1;
    setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  }

  /// Changes, cuts or lengthens the message, and sends it in pieces.
  void say_changed(std::string message) {
    switch (random_() % 4) {
      case 0: {
        const std::size_t bit = random_() % (8 * message.size());
        message[bit / 8] = static_cast<char>(message[bit / 8] ^ (1 << (bit % 8)));
        break;
      }
      case 1:
        message.resize(random_() % message.size());
        break;
      case 2:
        for (char& one : message) one = static_cast<char>(random_());
        break;
      default: {
        // Another character than the one at that place: else what rank 0 reads first might be the whole message.
        const std::size_t at = random_() % message.size();
        message.insert(at, 1 + random_() % 100,
                       static_cast<char>(message[at] ^ static_cast<char>(1 + random_() % 255)));
      }
    }
    say(message);
  }

  void say(const std::string& message) {
    for (std::size_t at = 0; at < message.size();) {
      const std::size_t count = std::min<std::size_t>(message.size() - at, 1 + random_() % 100);
      if (send(socket_.get(), message.data() + at, count, MSG_NOSIGNAL) < 0) return;
      at += count;
    }
  }

  /// False when rank 0 closes the connection, or says nothing for 10 s.
  template <class Message>
  bool hear(Message& message) {
    pollfd entry{socket_.get(), POLLIN, 0};
    if (poll(&entry, 1, 10'000) != 1) return false;
    return recv(socket_.get(), &message, sizeof(message), MSG_WAITALL) == static_cast<ssize_t>(sizeof(message));
  }

 private:
  Descriptor socket_;
  std::mt19937_64& random_;
};

class Admissions : public testing::Test {
 protected:
  Admissions() {
    set_log_function([](LogLevel, std::string_view, void*) {}, nullptr);
  }
  ~Admissions() override { set_log_function(nullptr, nullptr); }
};

TEST_F(Admissions, ChangedHellosAdmitNobody) {
  for (const tests::Seed& seed : tests::seeds_of("test_exchange_admission/hellos", 1)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed.value);
    Admitting rank_0;
    for (int round = 0; round < 500; ++round) {
      Stranger stranger(rank_0, random);
      stranger.say_changed(text_of(wire::make_hello(rank_0.key(), 1 + static_cast<int>(random() % 2), kAdmittedRanks)));
    }
    EXPECT_FALSE(rank_0.is_done());
    rank_0.expect_ranks_join();
  }
}

/// A recorded Hello gets a challenge; no answer but that of the key's owner is taken.
TEST_F(Admissions, ChangedAnswersAdmitNobody) {
  for (const tests::Seed& seed : tests::seeds_of("test_exchange_admission/answers", 1)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed.value);
    Admitting rank_0;
    wire::Challenge earlier;
    for (int round = 0; round < 500; ++round) {
      const wire::Hello hello = wire::make_hello(rank_0.key(), 1 + static_cast<int>(random() % 2), kAdmittedRanks);
      Stranger stranger(rank_0, random);
      stranger.say(text_of(hello));
      wire::Challenge challenge;
      ASSERT_TRUE(stranger.hear(challenge)) << "round " << round;
      ASSERT_EQ(challenge.refusal, wire::Refusal::none);
      const wire::Response wrong[] = {{wire::prove(rank_0.key(), "rank", hello, earlier)},
                                      {wire::prove(rank_0.key(), "rank 0", hello, challenge)},
                                      {wire::prove(wire::job_key("other"), "rank", hello, challenge)},
                                      {hello.mark}};
      const bool is_changed = random() % 2 == 0;
      if (is_changed) {
        stranger.say_changed(text_of(wire::prove(rank_0.key(), "rank", hello, challenge)));
      } else {
        stranger.say(text_of(wrong[random() % std::size(wrong)]));
        wire::Verdict verdict;
        ASSERT_TRUE(stranger.hear(verdict)) << "round " << round;
        EXPECT_EQ(verdict.refusal, wire::Refusal::token);
      }
      earlier = challenge;
    }
    EXPECT_FALSE(rank_0.is_done());
    rank_0.expect_ranks_join();
  }
}

/// Each refusal is told.
TEST_F(Admissions, RanksThatDoNotBelongAreTold) {
  std::mt19937_64 random(1);  // how messages are cut
  Admitting rank_0;
  const auto told = [&](const wire::Hello& hello) {
    Stranger rank(rank_0, random);
    rank.say(text_of(hello));
    wire::Challenge challenge;
    EXPECT_TRUE(rank.hear(challenge));
    if (challenge.refusal != wire::Refusal::none) return challenge.refusal;
    rank.say(text_of(wire::prove(rank_0.key(), "rank", hello, challenge)));
    wire::Verdict verdict;
    EXPECT_TRUE(rank.hear(verdict));
    return verdict.refusal;
  };
  EXPECT_EQ(told(wire::make_hello(wire::job_key("other"), 1, kAdmittedRanks)), wire::Refusal::token);
  EXPECT_EQ(told(wire::make_hello(rank_0.key(), 1, kAdmittedRanks + 1)), wire::Refusal::ranks);
  EXPECT_EQ(told(wire::make_hello(rank_0.key(), kAdmittedRanks, kAdmittedRanks)), wire::Refusal::ranks);
  rank_0.expect_ranks_join();
}

TEST_F(Admissions, ARankWithoutADescriptorNamesTheLimit) {
  const Address address = Address::parse("127.0.0.1", 1);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  std::string text;
  Status status = Status::ok;
  try {
    (void)dial_rank_0({1, 2, 30}, {[&](std::string&) { return Rendezvous{{address}, {}}; }, false});
  } catch (const Error& error) {
    status = error.status();
    text = error.what();
  }
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(status, Status::no_resource);
  EXPECT_EQ(text, "cannot make a socket to reach rank 0 (Too many open files; raise the limit, ulimit -n)");
}

}  // namespace
}  // namespace torii
