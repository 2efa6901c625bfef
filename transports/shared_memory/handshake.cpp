// SPDX-License-Identifier: Apache-2.0
// The event loop in which a rank connects to the lower ranks, admits the higher ones, and swaps memfds with both.
#include "transports/shared_memory/handshake.hpp"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "runtime/base/deadline.hpp"
#include "runtime/base/reason.hpp"
#include "runtime/base/status.hpp"

namespace torii::shared_memory {
namespace {

constexpr std::uint32_t kMagic = 0x746f6172;

/// The one message of each direction; it carries the sender's memfds.
struct Hello {
  std::uint32_t magic = kMagic;
  std::int32_t rank = -1;
  Token job_token{};
};
static_assert(sizeof(Hello) == 24, "no padding crosses the socket");

socklen_t fill_address(const std::string& name, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  // A leading zero byte makes the name abstract.
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

ucred credentials(int socket) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) peer.uid = static_cast<uid_t>(-1);
  return peer;
}

/// Arena and life. A rank of this process, from another copy of this library, gets only the arena. If that rank closed
/// the life, the kernel would take this process's lock on it.
std::size_t handed_bytes(int socket) { return (credentials(socket).pid == getpid() ? 1 : 2) * sizeof(int); }

bool send_hello(int socket, const Hello& hello, const int (&files)[2]) {
  iovec part{const_cast<Hello*>(&hello), sizeof(hello)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(files))] = {};
  const std::size_t bytes = handed_bytes(socket);
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(bytes);
  cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(bytes);
  std::memcpy(CMSG_DATA(rights), files, bytes);
  return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(sizeof(hello));
}

enum class Received { nothing_yet, hello, rubbish };

Received receive_hello(int socket, Hello& hello, Handed& handed) {
  iovec part{&hello, sizeof(hello)};
  int files[2] = {-1, -1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(files))] = {};
  const std::size_t bytes = handed_bytes(socket);
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_LEN(bytes);  // room for these: the kernel closes any others
  const ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Received::nothing_yet;
  if (got < 0) return Received::rubbish;
  const cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  std::size_t got_bytes = 0;
  if (rights != nullptr && rights->cmsg_type == SCM_RIGHTS) {
    got_bytes = std::min(rights->cmsg_len - CMSG_LEN(0), bytes);
    std::memcpy(files, CMSG_DATA(rights), got_bytes);
  }
  handed = {Descriptor(files[0]), Descriptor(files[1])};
  if (got_bytes < bytes && (message.msg_flags & MSG_CTRUNC) != 0) {
    throw Error(Status::no_resource, "too many open files to take over an arena; raise the limit (ulimit -n)");
  }
  const bool whole = got == static_cast<ssize_t>(sizeof(hello)) && (message.msg_flags & MSG_TRUNC) == 0;
  return whole && got_bytes == bytes && hello.magic == kMagic ? Received::hello : Received::rubbish;
}

class Handshake {
 public:
  Handshake(const Listener& listener, const HandshakePlan& plan)
      : listener_(listener), plan_(plan), handed_(plan.names.size()), dialed_(plan.names.size()) {}

  std::vector<Handed> run() {
    Deadline deadline = Deadline::after_s(plan_.timeout_s);
    for (int missing = first_missing(); missing >= 0; missing = first_missing()) {
      if (plan_.lost(missing)) throw Error(Status::peer_lost, who(missing) + " has ended while joining", missing);
      if (deadline.is_over()) {
        throw Error(Status::timeout, who(missing) + " did not hand over its arena in time", missing);
      }
      dial_lower_ranks();
      wait();
      admit();
      hear_higher_ranks();
      hear_lower_ranks();
    }
    return std::move(handed_);
  }

 private:
  const std::string& who(int rank) const { return plan_.who[static_cast<std::size_t>(rank)]; }
  int first_missing() const;
  void dial_lower_ranks();
  void wait();
  void admit();
  void hear_higher_ranks();
  void hear_lower_ranks();
  bool accepts(const Hello& hello) const { return hello.job_token == plan_.job_token; }
  bool has_handed(std::size_t rank) const { return handed_[rank].arena.open(); }
  bool send_own_hello(const Descriptor& socket) const {
    return send_hello(socket.get(), {kMagic, plan_.rank, plan_.job_token}, {plan_.arena_fd, plan_.life_fd});
  }

  const Listener& listener_;
  const HandshakePlan& plan_;
  std::vector<Handed> handed_;        // by rank
  std::vector<Descriptor> dialed_;    // by rank; connected to a lower rank, waiting for its answer
  std::vector<Descriptor> admitted_;  // higher ranks or strangers that have not yet identified themselves
};

/// The rank to name in an error: a dead one if there is one, otherwise the lowest missing one; -1 if none is missing.
int Handshake::first_missing() const {
  int missing = -1;
  for (int rank = 0; rank < static_cast<int>(handed_.size()); ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (plan_.names[at].empty() || has_handed(at)) continue;
    if (plan_.lost(rank)) return rank;
    if (missing < 0) missing = rank;
  }
  return missing;
}

void Handshake::dial_lower_ranks() {
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(plan_.rank); ++rank) {
    if (plan_.names[rank].empty() || has_handed(rank) || dialed_[rank].open()) continue;
    Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.open()) throw Error(Status::no_resource, "cannot make a socket for " + plan_.who[rank] + reason());
    sockaddr_un address;
    const socklen_t length = fill_address(plan_.names[rank], address);
    if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
      // EAGAIN: its queue is full at the moment. Listeners outlive the handshake, so a refusal means that the rank has
      // ended.
      if (errno == EAGAIN || errno == EINTR) continue;
      throw Error(Status::peer_lost, plan_.who[rank] + " has ended while joining" + reason(), static_cast<int>(rank));
    }
    if (send_own_hello(socket)) dialed_[rank] = std::move(socket);
  }
}

void Handshake::wait() {
  std::vector<pollfd> entries{{listener_.fd(), POLLIN, 0}};
  for (const Descriptor& one : admitted_) entries.push_back({one.get(), POLLIN, 0});
  for (const Descriptor& one : dialed_) {
    if (one.open()) entries.push_back({one.get(), POLLIN, 0});
  }
  // Short, because deaths, the deadline and full queues are checked in between.
  constexpr int kLookAroundMs = 10;
  poll(entries.data(), entries.size(), kLookAroundMs);
}

void Handshake::admit() {
  while (true) {
    Descriptor socket(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.open()) {
      if (errno == EMFILE || errno == ENFILE) {
        throw Error(Status::no_resource, "cannot admit the ranks of this node" + reason());
      }
      return;
    }
    if (credentials(socket.get()).uid != geteuid()) continue;
    admitted_.push_back(std::move(socket));
    // Ranks speak as soon as they are connected and dial again when dropped; silent connections are dropped for new
    // ones.
    constexpr std::size_t kSilentMax = 64;
    if (admitted_.size() > handed_.size() + kSilentMax) admitted_.erase(admitted_.begin());
  }
}

void Handshake::hear_higher_ranks() {
  for (Descriptor& socket : admitted_) {
    Hello hello;
    Handed handed;
    const Received received = receive_hello(socket.get(), hello, handed);
    if (received == Received::nothing_yet) continue;
    const bool higher = hello.rank > plan_.rank && hello.rank < static_cast<int>(handed_.size());
    if (received == Received::hello && accepts(hello) && higher && send_own_hello(socket)) {
      handed_[static_cast<std::size_t>(hello.rank)] = std::move(handed);
    }
    socket = Descriptor();
  }
  std::erase_if(admitted_, [](const Descriptor& socket) { return !socket.open(); });
}

void Handshake::hear_lower_ranks() {
  for (std::size_t rank = 0; rank < dialed_.size(); ++rank) {
    if (!dialed_[rank].open()) continue;
    Hello hello;
    Handed handed;
    const Received received = receive_hello(dialed_[rank].get(), hello, handed);
    if (received == Received::nothing_yet) continue;
    const Descriptor socket = std::move(dialed_[rank]);
    const bool right = received == Received::hello && accepts(hello) && hello.rank == static_cast<int>(rank) &&
                       credentials(socket.get()).uid == geteuid();
    // Otherwise it was dropped; the next round dials again.
    if (right) handed_[rank] = std::move(handed);
  }
}

}  // namespace

Token random_token() {
  Token token;
  std::size_t filled = 0;
  while (filled < token.size()) {
    const ssize_t got = getrandom(token.data() + filled, token.size() - filled, 0);
    if (got > 0) {
      filled += static_cast<std::size_t>(got);
    } else if (errno != EINTR) {
      throw Error(Status::no_resource, "the kernel gives no random bytes" + reason());
    }
  }
  return token;
}

Listener::Listener(int ranks)
    : name_("torii-"), fd_(OwnDescriptor::of([] {
        return Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      })) {
  for (const std::byte part : random_token()) {
    constexpr char kDigits[] = "0123456789abcdef";
    name_ += kDigits[std::to_integer<int>(part) >> 4];
    name_ += kDigits[std::to_integer<int>(part) & 15];
  }
  sockaddr_un address;
  const socklen_t length = fill_address(name_, address);
  if (!fd_.open() || bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      listen(fd_.get(), ranks + 16) != 0) {
    throw Error(Status::no_resource, "cannot listen for the ranks of this node" + reason());
  }
}

std::vector<Handed> hand_over_arenas(const Listener& listener, const HandshakePlan& plan) {
  return Handshake(listener, plan).run();
}

}  // namespace torii::shared_memory
