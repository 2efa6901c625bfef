// SPDX-License-Identifier: Apache-2.0
// The listener of a rank, and its connections to the listeners of its peers.
#include "runtime/bootstrap/life_watch.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "runtime/base/status.hpp"
#include "runtime/devices/pidfd.hpp"

namespace torii {
namespace {

/// The last messages of a peer may arrive this long after its connection has ended.
constexpr std::int64_t kLastMessagesNs = 100'000'000;
constexpr std::int64_t kConnectEveryNs = 100'000'000;
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

}  // namespace

LifeWatch::LifeWatch(Bootstrap& bootstrap, const Ranks& ranks, const std::string& address)
    : listener_(listen(address)), watches_(static_cast<std::size_t>(bootstrap.ranks())) {
  Card mine{};
  if (listener_.open()) {
    const Address at = Address::of_socket(listener_.get());
    mine.bytes = at.bytes();
    std::memcpy(&mine.address, at.get(), at.bytes());
  }
  const std::vector<Card> cards = gather_values(bootstrap, mine);
  const auto node = [&](std::size_t rank) { return ranks.nodes.empty() ? -1 : ranks.nodes[rank]; };
  const auto own = static_cast<std::size_t>(bootstrap.rank());
  // Each rank starts after its own number, so that not all connect to one rank at once.
  for (std::size_t step = 1; step < cards.size(); ++step) {
    const std::size_t peer = (own + step) % cards.size();
    if (node(peer) >= 0 && node(peer) == node(own)) continue;
    Watch& one = watches_[peer];
    const pid_t process = ranks.processes.empty() ? 0 : ranks.processes[peer];
    if (process == getpid()) continue;  // a thread never ends alone
    one.process = open_pidfd(process);
    const Card& card = cards[peer];
    if (card.bytes == 0 || card.bytes > sizeof(card.address)) continue;
    one.listener = Address(reinterpret_cast<const sockaddr*>(&card.address), static_cast<socklen_t>(card.bytes));
    (void)connect_anew(one, 0);
  }
}

bool LifeWatch::has_ended(int peer, std::int64_t now_ns) noexcept {
  const std::lock_guard lock(mutex_);
  Watch& one = watches_[static_cast<std::size_t>(peer)];
  if (one.ended_ns == 0 && (torii::has_ended(one.process) || is_refused(one, now_ns))) one.ended_ns = now_ns;
  return one.ended_ns != 0 && now_ns - one.ended_ns >= kLastMessagesNs;
}

/// Looks at the connection. If it has ended, makes another one, and says whether the peer's host refuses that.
bool LifeWatch::is_refused(Watch& one, std::int64_t now_ns) noexcept {
  if (one.state != State::none) {
    const int error = ended_with(one);
    if (error == 0) return false;
    const bool is_refusal = one.state == State::connecting && error == ECONNREFUSED;
    // A connection that is reset was made before.
    one.has_answered = one.has_answered || error == ECONNRESET;
    one.state = State::none;
    one.connection = Descriptor();
    if (is_refusal) return one.has_answered;
  }
  return one.has_answered && now_ns >= one.connects_ns && connect_anew(one, now_ns) == ECONNREFUSED;
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
  one.connection = std::move(connection);
  one.state = State::connecting;
  return 0;
}

/// 0 if the connection stands or is still being made; otherwise an errno.
int LifeWatch::ended_with(Watch& one) noexcept {
  const bool is_new = one.state == State::connecting;
  pollfd entry{one.connection.get(), static_cast<short>(is_new ? POLLOUT : POLLIN | POLLRDHUP), 0};
  if (poll(&entry, 1, 0) <= 0) return 0;
  int error = 0;
  socklen_t bytes = sizeof(error);
  if (getsockopt(one.connection.get(), SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) error = errno;
  if (error != 0) return error;
  if (!is_new) return EPIPE;
  // If the kernel picks the port of an ended listener of this host, the socket connects to itself.
  const Address own = Address::of_socket(one.connection.get());
  if (own.port() == one.listener.port() && own.number() == one.listener.number()) return ECONNREFUSED;
  one.state = State::connected;
  one.has_answered = true;
  return 0;
}

}  // namespace torii
