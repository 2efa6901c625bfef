// SPDX-License-Identifier: Apache-2.0
// The listener of a rank, and its connections to the listeners of its peers.
#include "runtime/bootstrap/life_watch.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "runtime/base/log.hpp"
#include "runtime/base/status.hpp"
#include "runtime/devices/open_files.hpp"
#include "runtime/devices/pidfd.hpp"

namespace torii {
namespace {

/// The last messages of a peer may arrive this long after its connection has ended.
constexpr std::int64_t kLastMessagesNs = 100'000'000;
constexpr std::int64_t kConnectEveryNs = 100'000'000;
constexpr std::int64_t kLookEveryNs = 1'000'000;
/// Routers forget connections over which nothing goes for minutes.
constexpr int kKeepaliveS = 60;

/// Where a rank listens; no bytes: nowhere.
struct Card {
  sockaddr_storage address;
  std::uint64_t bytes;
};

/// None if this host has no address that can be known.
OwnDescriptor listen(const std::string& address) {
  constexpr int kQueue = 65535;  // the kernel lowers it to its own limit; strangers take places too
  try {
    const Address own =
        address.empty() ? select_interfaces("", interfaces_of_host()).front().address : Address::parse(address, 0);
    return OwnDescriptor::of([&] { return listen_on(own.with_port(0), {}, kQueue); });
  } catch (const Error& error) {
    if (error.status() == Status::no_resource) throw;
    return {};
  }
}

bool lacks_files(int error) { return error == EMFILE || error == ENFILE; }

}  // namespace

LifeWatch::LifeWatch(Bootstrap& bootstrap, const Ranks& ranks, const std::string& address)
    : rank_(bootstrap.rank()),
      listener_(listen(address)),
      events_(epoll_create1(EPOLL_CLOEXEC)),
      watches_(static_cast<std::size_t>(bootstrap.ranks())) {
  Card mine{};
  if (listener_.open()) {
    const Address at = Address::of_socket(listener_.get());
    mine.bytes = at.bytes();
    std::memcpy(&mine.address, at.get(), at.bytes());
  }
  const std::vector<Card> cards = gather_values(bootstrap, mine);
  const auto node = [&](std::size_t rank) { return ranks.nodes.empty() ? -1 : ranks.nodes[rank]; };
  const auto own = static_cast<std::size_t>(rank_);
  // Each rank starts after its own number, so that not all connect to one rank at once.
  for (std::size_t step = 1; step < cards.size(); ++step) {
    const std::size_t peer = (own + step) % cards.size();
    if (node(peer) >= 0 && node(peer) == node(own)) continue;
    Watch& one = watches_[peer];
    one.pid = ranks.processes.empty() ? 0 : ranks.processes[peer];
    if (one.pid == getpid()) continue;  // a thread never ends alone
    const Card& card = cards[peer];
    if (card.bytes > 0 && card.bytes <= sizeof(card.address)) {
      one.listener = Address(reinterpret_cast<const sockaddr*>(&card.address), static_cast<socklen_t>(card.bytes));
    }
    one.lacks_files = true;
    peers_.push_back(static_cast<int>(peer));
  }
  (void)watch(peers_.size() * static_cast<std::size_t>(ranks.fabric_files));
}

void LifeWatch::watch_the_rest() {
  const int unwatched = watch(0);
  if (unwatched == 0 || !logs(LogLevel::warn)) return;
  log(LogLevel::warn, "rank " + std::to_string(rank_) + " does not watch the processes of " +
                          std::to_string(unwatched) + " of " + std::to_string(peers_.size()) +
                          " ranks of other nodes, because it may open only " + std::to_string(open_files_limit()) +
                          " files: where their child processes hide their end, they are lost only at the deadline; "
                          "raise the limit (ulimit -n)");
}

/// The kernel gives out the lowest numbers, so about as many descriptors are open.
int LifeWatch::first_free_number() const noexcept { return Descriptor(fcntl(events_.get(), F_DUPFD_CLOEXEC, 0)).get(); }

/// Watches peers with at most half of the descriptors that are neither open nor reserved. Returns how many peers are
/// left.
int LifeWatch::watch(std::size_t reserved) noexcept {
  const std::lock_guard lock(mutex_);
  const int first = first_free_number();
  const std::size_t used = first < 0 ? open_files_limit() : static_cast<std::size_t>(first) + reserved;
  const std::size_t share = open_files_limit() > used ? (open_files_limit() - used) / 2 : 0;
  bool has_files = share != 0;
  int unwatched = 0;
  for (const int peer : peers_) {
    Watch& one = watches_[static_cast<std::size_t>(peer)];
    if (one.lacks_files && has_files) has_files = start(one, first + static_cast<int>(share));
    unwatched += one.lacks_files ? 1 : 0;
  }
  return unwatched;
}

/// With descriptors below `end`; false if they have run out.
bool LifeWatch::start(Watch& one, int end) noexcept {
  if (one.pid != 0) {
    one.process = open_pidfd(one.pid);
    if (one.process.get() >= end || (!one.process.open() && lacks_files(errno))) {
      one.process = Descriptor();
      return false;
    }
    one.pid = 0;  // later it may be another process's
    if (one.process.open() && !reports(one, one.process, EPOLLIN, EPOLL_CTL_ADD)) one.process = Descriptor();
  }
  if (one.listener.bytes() != 0) {
    const int error = connect_anew(one, 0);
    if (one.connection.get() >= end || lacks_files(error)) {
      one.state = State::none;
      drop(one.connection);
      return false;
    }
  }
  one.lacks_files = false;
  return true;
}

/// What the events of a descriptor carry: the rank, and whether it is the pidfd.
bool LifeWatch::reports(const Watch& one, const Descriptor& descriptor, std::uint32_t events, int how) noexcept {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = static_cast<std::uint64_t>(&one - watches_.data()) * 2 + (&descriptor == &one.process ? 1 : 0);
  return epoll_ctl(events_.get(), how, descriptor.get(), &event) == 0;
}

bool LifeWatch::watches(int peer) noexcept {
  const std::lock_guard lock(mutex_);
  const Watch& one = watches_[static_cast<std::size_t>(peer)];
  return one.process.open() || one.state == State::connected || one.has_answered || one.ended_ns != 0;
}

bool LifeWatch::has_ended(int peer, std::int64_t now_ns) noexcept {
  const std::lock_guard lock(mutex_);
  look(now_ns);
  Watch& one = watches_[static_cast<std::size_t>(peer)];
  if (one.ended_ns == 0 && one.state == State::none && one.has_answered && now_ns >= one.connects_ns &&
      connect_anew(one, now_ns) == ECONNREFUSED) {
    one.ended_ns = now_ns;
  }
  return one.ended_ns != 0 && now_ns - one.ended_ns >= kLastMessagesNs;
}

void LifeWatch::look(std::int64_t now_ns) noexcept {
  if (now_ns < looks_ns_) return;
  looks_ns_ = now_ns + kLookEveryNs;
  constexpr int kEvents = 64;
  epoll_event events[kEvents];
  for (int count = kEvents; count == kEvents;) {
    count = epoll_wait(events_.get(), events, kEvents, 0);
    for (int i = 0; i < count; ++i) {
      Watch& one = watches_[events[i].data.u64 / 2];
      if (events[i].data.u64 % 2 == 0) {
        look_at_connection(one, now_ns);
      } else {
        if (one.ended_ns == 0) one.ended_ns = now_ns;
        drop(one.process);
      }
    }
  }
}

/// If the connection has ended, has_ended() makes another one, unless the peer's host refused this one after an answer.
void LifeWatch::look_at_connection(Watch& one, std::int64_t now_ns) noexcept {
  const int error = ended_with(one);
  if (error == 0) {
    (void)reports(one, one.connection, EPOLLIN | EPOLLRDHUP, EPOLL_CTL_MOD);
    return;
  }
  const bool is_refusal = one.state == State::connecting && error == ECONNREFUSED;
  if (is_refusal && one.has_answered && one.ended_ns == 0) one.ended_ns = now_ns;
  // A connection that is reset was made before.
  one.has_answered = one.has_answered || error == ECONNRESET;
  one.state = State::none;
  drop(one.connection);
}

/// A child may have a copy, so closing it does not end its events.
void LifeWatch::drop(Descriptor& descriptor) noexcept {
  (void)epoll_ctl(events_.get(), EPOLL_CTL_DEL, descriptor.get(), nullptr);
  descriptor = Descriptor();
}

/// Returns 0 while the connection is made; otherwise an errno.
int LifeWatch::connect_anew(Watch& one, std::int64_t now_ns) noexcept {
  one.connects_ns = now_ns + kConnectEveryNs;
  Descriptor connection(socket(one.listener.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!connection.open()) return errno;
  // Closed connections of this rank leave nothing behind.
  const linger resets = {1, 0};
  const int yes = 1;
  setsockopt(connection.get(), SOL_SOCKET, SO_LINGER, &resets, sizeof(resets));
  setsockopt(connection.get(), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
  setsockopt(connection.get(), IPPROTO_TCP, TCP_KEEPIDLE, &kKeepaliveS, sizeof(kKeepaliveS));
  if (connect(connection.get(), one.listener.get(), one.listener.bytes()) != 0 && errno != EINPROGRESS) return errno;
  if (!reports(one, connection, EPOLLOUT, EPOLL_CTL_ADD)) return errno;
  one.connection = std::move(connection);
  one.state = State::connecting;
  return 0;
}

/// After an event: 0 if the connection stands now, otherwise an errno.
int LifeWatch::ended_with(Watch& one) noexcept {
  int error = 0;
  socklen_t bytes = sizeof(error);
  if (getsockopt(one.connection.get(), SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) error = errno;
  if (error != 0) return error;
  if (one.state == State::connected) return EPIPE;
  // If the kernel picks the port of an ended listener of this host, the socket connects to itself.
  const Address own = Address::of_socket(one.connection.get());
  if (own.port() == one.listener.port() && own.number() == one.listener.number()) return ECONNREFUSED;
  one.state = State::connected;
  one.has_answered = true;
  return 0;
}

}  // namespace torii
