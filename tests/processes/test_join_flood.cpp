// SPDX-License-Identifier: Apache-2.0
// More connections than rank 0 holds, dialled anew as soon as they are dropped: the ranks join all the same.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "runtime/bootstrap/wire.hpp"
#include "runtime/devices/address.hpp"
#include "tests/processes/join_job.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

constexpr int kFloodedRanks = 4;

enum class Stop { nothing, half_hello, hello, half_answer, byte_by_byte, hang_up, recorded_hello };

const char* name(Stop stop) {
  switch (stop) {
    case Stop::nothing:
      return "nothing";
    case Stop::half_hello:
      return "half_hello";
    case Stop::hello:
      return "hello";
    case Stop::half_answer:
      return "half_answer";
    case Stop::byte_by_byte:
      return "byte_by_byte";
    case Stop::hang_up:
      return "hang_up";
    case Stop::recorded_hello:
      return "recorded_hello";
  }
  return "";
}

/// One of the connections: it says what its kind says, then waits until rank 0 drops it, and dials again.
class Stranger {
 public:
  Stranger(const Address& address, Stop stop, const wire::Hello& hello)
      : address_(&address), stop_(stop), hello_(hello) {}

  pollfd entry() const { return {socket_.get(), static_cast<short>(connected_ ? POLLIN : POLLOUT), 0}; }

  /// Does what can be done now. Returns true when it has dialled.
  bool go_on(bool ready) {
    if (!socket_.open()) {
      socket_ = Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      said_ = 0;
      heard_ = 0;
      connected_ = connect(socket_.get(), address_->get(), address_->bytes()) == 0;
      if (!connected_ && errno != EINPROGRESS) {
        socket_ = Descriptor();
        return false;
      }
      if (connected_) begin();
      return true;
    }
    if (!connected_) {
      connected_ = ready;
      if (connected_) begin();
    } else if (ready) {
      listen();
    }
    if (connected_ && stop_ == Stop::byte_by_byte && std::chrono::steady_clock::now() >= next_byte_) {
      say(1);
      next_byte_ = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    }
    return false;
  }

 private:
  void begin() {
    if (stop_ == Stop::half_hello) say(sizeof(hello_) / 2);
    if (stop_ == Stop::hello || stop_ == Stop::half_answer || stop_ == Stop::recorded_hello) say(sizeof(hello_));
    if (stop_ == Stop::hang_up) socket_ = Descriptor();
  }

  void say(std::size_t count) {
    if (said_ + count > sizeof(hello_)) return;
    const char* const bytes = reinterpret_cast<const char*>(&hello_) + said_;
    if (send(socket_.get(), bytes, count, MSG_NOSIGNAL) < 0) socket_ = Descriptor();
    said_ += count;
  }

  void listen() {
    char bytes[256];
    const ssize_t got = recv(socket_.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN)) {
      socket_ = Descriptor();
      return;
    }
    if (got > 0) heard_ += static_cast<std::size_t>(got);
    if (stop_ != Stop::half_answer || heard_ < sizeof(wire::Challenge) || said_ > sizeof(hello_)) return;
    const wire::Response response;
    said_ += send(socket_.get(), &response, sizeof(response) / 2, MSG_NOSIGNAL) > 0 ? sizeof(response) / 2 : 0;
  }

  const Address* address_;
  Stop stop_;
  wire::Hello hello_;
  Descriptor socket_;
  bool connected_ = false;
  std::size_t said_ = 0;
  std::size_t heard_ = 0;
  std::chrono::steady_clock::time_point next_byte_;
};

/// Connections from one thread, until it ends; twice as many as rank 0 holds.
class Flood {
 public:
  Flood(int port, const std::vector<Stop>& kinds, const wire::Hello& hello)
      : address_(Address::parse("127.0.0.1", port)) {
    constexpr std::size_t kConnections = 2 * (64 + kFloodedRanks);
    for (std::size_t i = 0; i < kConnections; ++i) strangers_.emplace_back(address_, kinds[i % kinds.size()], hello);
    thread_ = std::thread([this] { run(); });
  }
  ~Flood() {
    stop_ = true;
    thread_.join();
  }
  int dialled() const { return dialled_; }

 private:
  void run() {
    std::vector<pollfd> entries;
    while (!stop_) {
      entries.clear();
      for (const Stranger& one : strangers_) entries.push_back(one.entry());
      poll(entries.data(), entries.size(), 1);
      for (std::size_t i = 0; i < strangers_.size(); ++i) {
        if (strangers_[i].go_on(entries[i].fd >= 0 && entries[i].revents != 0)) ++dialled_;
      }
    }
  }

  Address address_;
  std::vector<Stranger> strangers_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> dialled_ = 0;
  std::thread thread_;
};

wire::Hello hello_of_a_stranger() {
  wire::Hello hello;
  hello.rank = 1;
  hello.ranks = kFloodedRanks;
  return hello;
}

void expect_start_ups(int starts, const std::vector<Stop>& kinds, const wire::Hello& hello) {
  const int port = free_port();
  const Flood flood(port, kinds, hello);
  for (int start = 0; start < starts; ++start) {
    const auto outcomes =
        run_job(kFloodedRanks, {"gather"}, meeting_at(port) + Words{"TORII_JOB_TOKEN=secret", "TORII_TIMEOUT=10"});
    for (const Outcome& one : outcomes) ASSERT_EQ(one.code, 0) << "start " << start << ": " << one.output;
  }
  // Else the test would show nothing.
  EXPECT_GT(flood.dialled(), starts * 64);
}

class JoinFlood : public testing::TestWithParam<Stop> {};

TEST_P(JoinFlood, RanksJoin) {
  const int starts = is_full() ? 50 : 5;
  expect_start_ups(starts, {GetParam()}, hello_of_a_stranger());
}

INSTANTIATE_TEST_SUITE_P(AllKinds, JoinFlood,
                         testing::Values(Stop::nothing, Stop::half_hello, Stop::hello, Stop::half_answer,
                                         Stop::byte_by_byte, Stop::hang_up),
                         [](const auto& kind) { return std::string(name(kind.param)); });

TEST(JoinFloods, FiftyStartUpsAmongStrangersOfAllKinds) {
  expect_start_ups(50,
                   {Stop::nothing, Stop::half_hello, Stop::hello, Stop::half_answer, Stop::byte_by_byte, Stop::hang_up},
                   hello_of_a_stranger());
}

/// A stranger that has listened to the network says what a rank has said; it cannot answer the challenge.
TEST(JoinFloods, RanksJoinAmongThoseWhoRepeatTheirHello) {
  expect_start_ups(10, {Stop::recorded_hello}, wire::make_hello(wire::job_key("secret"), 1, kFloodedRanks));
}

}  // namespace
}  // namespace torii::tests
