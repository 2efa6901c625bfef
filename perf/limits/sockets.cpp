// SPDX-License-Identifier: Apache-2.0
// Connections of plain TCP: each rank connects to all lower ones.
#include "perf/limits/sockets.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "perf/common/failure.hpp"
#include "perf/common/meeting.hpp"
#include "runtime/devices/address.hpp"

namespace torii::perf {
namespace {

constexpr int kDeadlineMs = 30'000;
/// Calls in a row that move nothing, before one waits in poll(): a short wait where ranks share CPUs, and elsewhere one
/// that only a peer in trouble makes, so that it has a deadline.
constexpr int kPollsShared = 50, kPolls = 1'000'000;

/// The address at which a rank listens, and a secret that peers send there first: strangers do not know it.
struct Card {
  sockaddr_storage address;
  socklen_t address_bytes;
  uint64_t secret;
};

/// The first message of a rank that connects.
struct Hello {
  uint64_t secret;
  int32_t rank;
  int32_t reserved = 0;
};

[[noreturn]] void fail(const std::string& what) {
  throw Failure(kNotPossible, "connections for the hand-written loops: " + what + ": " + std::strerror(errno));
}

Address first_address() {
  const char* const selection = std::getenv("TORII_INTERFACE");
  const std::vector<Interface> selected =
      rail_interfaces(selection == nullptr ? "" : selection, interfaces_of_host(), "");
  return selected.front().address;
}

/// All or nothing, within the deadline.
bool receive_whole(int socket, void* data, size_t bytes) {
  for (size_t at = 0; at < bytes;) {
    pollfd one{socket, POLLIN, 0};
    if (poll(&one, 1, kDeadlineMs) <= 0) return false;
    const ssize_t got = recv(socket, static_cast<std::byte*>(data) + at, bytes - at, 0);
    if (got <= 0) return false;
    at += static_cast<size_t>(got);
  }
  return true;
}

Descriptor connect_to(const Card& card, int rank) {
  Descriptor socket(::socket(card.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Hello hello{card.secret, rank};
  if (!socket.open() ||
      connect(socket.get(), reinterpret_cast<const sockaddr*>(&card.address), card.address_bytes) != 0)
    fail("cannot connect to " + Address(reinterpret_cast<const sockaddr*>(&card.address), card.address_bytes).text());
  if (send(socket.get(), &hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello)) fail("cannot send");
  return socket;
}

/// The next peer that knows the secret; others are turned away.
Descriptor accept_from(int listener, uint64_t secret, int32_t& rank) {
  for (;;) {
    pollfd one{listener, POLLIN, 0};
    if (poll(&one, 1, kDeadlineMs) <= 0) throw Failure(kTimeout, "a rank did not connect within 30 s");
    Descriptor socket(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    Hello hello{};
    if (!socket.open() || !receive_whole(socket.get(), &hello, sizeof(hello)) || hello.secret != secret) continue;
    rank = hello.rank;
    return socket;
  }
}

void set_up(const Descriptor& socket) {
  const int on = 1;
  if (setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0 ||
      fcntl(socket.get(), F_SETFL, O_NONBLOCK) != 0)
    fail("cannot set a socket up");
}

/// Bytes that moved; 0 if none can move now.
size_t moved(ssize_t result, int rank) {
  if (result > 0) return static_cast<size_t>(result);
  if (result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return 0;
  throw Failure(kPeerLost, "the connection of a hand-written loop with rank " + std::to_string(rank) + " has ended");
}

}  // namespace

Sockets::Sockets(const Job& job)
    : sockets_(static_cast<size_t>(job.ranks())), polls_before_sleep_(oversubscribed(job) ? kPollsShared : kPolls) {
  const Descriptor listener = listen_on(first_address().with_port(0), {}, job.ranks());
  const Address address = Address::of_socket(listener.get());
  Card mine{};
  std::memcpy(&mine.address, address.get(), address.bytes());
  mine.address_bytes = address.bytes();
  if (getrandom(&mine.secret, sizeof(mine.secret), 0) != sizeof(mine.secret)) fail("no random number");
  std::vector<Card> cards(sockets_.size());
  job.gather_bytes(&mine, cards.data(), sizeof(mine));
  for (int rank = 0; rank < job.rank(); ++rank)
    sockets_[static_cast<size_t>(rank)] = connect_to(cards[static_cast<size_t>(rank)], job.rank());
  for (int count = job.rank() + 1; count < job.ranks(); ++count) {
    int32_t rank = 0;
    Descriptor socket = accept_from(listener.get(), mine.secret, rank);
    sockets_.at(static_cast<size_t>(rank)) = std::move(socket);
  }
  for (const Descriptor& socket : sockets_)
    if (socket.open()) set_up(socket);
  job.barrier();
}

bool Sockets::advance(std::span<Transfer> transfers) {
  bool is_done = true, has_moved = false;
  for (size_t i = 0; i < transfers.size(); ++i) {
    Transfer& one = transfers[i];
    if (one.is_done()) continue;
    const int socket = sockets_[i].get(), rank = static_cast<int>(i);
    size_t bytes = 0;
    if (one.sent < one.out_bytes) {
      bytes = moved(send(socket, one.out + one.sent, one.out_bytes - one.sent, MSG_NOSIGNAL), rank);
      one.sent += bytes;
    }
    if (one.received < one.in_bytes) {
      const size_t got = moved(recv(socket, one.in + one.received, one.in_bytes - one.received, 0), rank);
      one.received += got;
      bytes += got;
    }
    has_moved |= bytes > 0;
    is_done &= one.is_done();
  }
  idle_ = has_moved ? 0 : idle_ + 1;
  if (!is_done && idle_ > polls_before_sleep_) wait_for_one(transfers);
  return !is_done;
}

void Sockets::wait_for_one(std::span<const Transfer> transfers) {
  std::vector<pollfd> waited;
  for (size_t i = 0; i < transfers.size(); ++i) {
    const Transfer& one = transfers[i];
    const int events = (one.sent < one.out_bytes ? POLLOUT : 0) | (one.received < one.in_bytes ? POLLIN : 0);
    if (events != 0) waited.push_back({sockets_[i].get(), static_cast<short>(events), 0});
  }
  if (poll(waited.data(), waited.size(), kDeadlineMs) == 0)
    throw Failure(kTimeout, "nothing moved in a hand-written loop for 30 s");
  idle_ = 0;
}

}  // namespace torii::perf
