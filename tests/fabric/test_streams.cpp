// SPDX-License-Identifier: Apache-2.0
// Which TCP streams an engine of libfabric ends when it closes, and how it closes while a write has come in part.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "runtime/base/descriptor.hpp"
#include "runtime/fabric/words.hpp"
#include "tests/fabric/transports.hpp"
#include "tests/support/thread_ranks.hpp"
#include "transports/libfabric/streams.hpp"

namespace torii::libfabric {
namespace {

using tests::run_ranks_as_threads;

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
  const Descriptor unconnected(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));  // it has no address of a peer
  // One end of each: the other belongs to the other side of the connection.
  EXPECT_EQ(shut_down_streams(address(accepted.listener), {none, with_rest}), 2);
  char byte = 0;
  EXPECT_EQ(recv(accepted.stream.get(), &byte, 1, 0), 0);
  EXPECT_EQ(recv(connected.peer.get(), &byte, 1, 0), 0);
  EXPECT_EQ(send(other.stream.get(), "x", 1, MSG_NOSIGNAL), 1);
  EXPECT_EQ(recv(other.peer.get(), &byte, 1, 0), 1);
  EXPECT_EQ(shut_down_streams(none, {none}), 0) << "an address that is not known is nobody's";
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

}  // namespace
}  // namespace torii::libfabric
