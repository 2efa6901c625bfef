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
#include "runtime/devices/open_files.hpp"

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

enum class Received { nothing_yet, hello, no_room, rubbish };

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
  ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got == 0) {
    // Linux looks for a message first, and whether the other end has closed afterwards. If the other end has sent and
    // closed in between, its message is behind this end.
    message.msg_controllen = CMSG_LEN(bytes);
    got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Received::nothing_yet;
  if (got < 0) return Received::rubbish;
  const cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  std::size_t got_bytes = 0;
  if (rights != nullptr && rights->cmsg_type == SCM_RIGHTS) {
    got_bytes = std::min(rights->cmsg_len - CMSG_LEN(0), bytes);
    std::memcpy(files, CMSG_DATA(rights), got_bytes);
  }
  handed = {Descriptor(files[0]), Descriptor(files[1])};
  if (got_bytes < bytes && (message.msg_flags & MSG_CTRUNC) != 0) return Received::no_room;
  const bool whole = got == static_cast<ssize_t>(sizeof(hello)) && (message.msg_flags & MSG_TRUNC) == 0;
  return whole && got_bytes == bytes && hello.magic == kMagic ? Received::hello : Received::rubbish;
}

/// A connection that this rank has admitted: of a higher rank, or of a stranger.
struct Caller {
  Descriptor socket;
  int rank = -1;  ///< who it is, once it has said so; it then waits for this rank's descriptors
};

/// A connection to a lower rank.
struct Callee {
  Descriptor socket;
  bool is_told = false;  ///< it has this rank's descriptors, and its own are awaited
};

class Handshake {
 public:
  Handshake(const Listener& listener, const HandshakePlan& plan)
      : listener_(listener), plan_(plan), dialed_(plan.names.size()), has_given_(plan.names.size()) {
    for (const std::string& name : plan.names) is_done_.push_back(name.empty());
  }

  void run() {
    Deadline deadline = Deadline::after_s(plan_.timeout_s);
    for (int missing = first_missing(); missing >= 0; missing = first_missing()) {
      if (plan_.lost(missing)) throw Error(Status::peer_lost, who(missing) + " has ended while joining", missing);
      if (deadline.is_over()) {
        throw Error(Status::timeout, who(missing) + " did not hand over its arena in time" + hindrance(), missing);
      }
      dial_lower_ranks();
      wait();
      admit();
      hear_higher_ranks();
      hear_lower_ranks();
    }
  }

 private:
  const std::string& who(int rank) const { return plan_.who[static_cast<std::size_t>(rank)]; }
  int first_missing() const;
  void dial_lower_ranks();
  Descriptor dial(std::size_t rank) const;
  void wait();
  void admit();
  void hear_higher_ranks();
  bool identifies(Caller& caller);
  void hear_lower_ranks();
  Received receive(const Descriptor& socket, Hello& hello, Handed& handed) const;
  void take(int rank, Handed handed);
  bool accepts(const Hello& hello) const { return hello.job_token == plan_.job_token; }
  bool send_own_hello(const Descriptor& socket);
  Error lacks_files() const;
  std::string hindrance() const;

  const Listener& listener_;
  const HandshakePlan& plan_;
  std::vector<Callee> dialed_;    // by rank
  std::vector<Caller> admitted_;  // not yet answered
  std::vector<bool> has_given_;   // by rank
  std::vector<bool> is_done_;     // by rank: it has given, and has been answered if it is a higher one
  bool was_put_off_ = false;      // when this rank last gave its descriptors, or tried to
};

/// The rank to name in an error: a dead one if there is one, otherwise the lowest missing one; -1 if none is missing.
int Handshake::first_missing() const {
  int missing = -1;
  for (int rank = 0; rank < static_cast<int>(is_done_.size()); ++rank) {
    if (is_done_[static_cast<std::size_t>(rank)]) continue;
    if (plan_.lost(rank)) return rank;
    if (missing < 0) missing = rank;
  }
  return missing;
}

/// False if it could not be sent now. The kernel counts the descriptors that a user has sent and nobody has received
/// yet. Users without privileges may have as many of them, in all their jobs, as one process may open. Beyond that,
/// sending is put off until others have received theirs.
bool Handshake::send_own_hello(const Descriptor& socket) {
  const bool is_sent = send_hello(socket.get(), {kMagic, plan_.rank, plan_.job_token}, {plan_.arena_fd, plan_.life_fd});
  was_put_off_ = !is_sent && errno == ETOOMANYREFS;
  return is_sent;
}

std::string Handshake::hindrance() const {
  if (!was_put_off_) return "";
  return "; this user has sent " + std::to_string(open_files_limit()) +
         " descriptors or more that nobody has received, and may send no more; raise the limit (ulimit -n)";
}

Error Handshake::lacks_files() const {
  return too_few_files(static_cast<std::size_t>(
      std::ranges::count_if(plan_.names, [](const std::string& name) { return !name.empty(); })));
}

void Handshake::take(int rank, Handed handed) {
  if (has_given_[static_cast<std::size_t>(rank)]) return;
  has_given_[static_cast<std::size_t>(rank)] = true;
  plan_.take(rank, std::move(handed));
}

/// Each rank begins with its neighbour, so that not all dial one rank at once.
void Handshake::dial_lower_ranks() {
  for (int lower = plan_.rank - 1; lower >= 0; --lower) {
    const auto rank = static_cast<std::size_t>(lower);
    Callee& callee = dialed_[rank];
    if (is_done_[rank] || callee.is_told) continue;
    if (!callee.socket.open()) callee.socket = dial(rank);
    if (!callee.socket.open()) continue;
    callee.is_told = send_own_hello(callee.socket);
    if (was_put_off_) return;
    if (!callee.is_told) callee.socket = Descriptor();
  }
}

/// A connection to a lower rank; none if its queue is full at the moment.
Descriptor Handshake::dial(std::size_t rank) const {
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.open() && errno == EMFILE) throw lacks_files();
  if (!socket.open()) throw Error(Status::no_resource, "cannot make a socket for " + plan_.who[rank] + reason());
  sockaddr_un address;
  const socklen_t length = fill_address(plan_.names[rank], address);
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0) return socket;
  if (errno == EAGAIN || errno == EINTR) return Descriptor();
  // Listeners outlive the handshake, so a refusal means that the rank has ended.
  throw Error(Status::peer_lost, plan_.who[rank] + " has ended while joining" + reason(), static_cast<int>(rank));
}

void Handshake::wait() {
  std::vector<pollfd> entries{{listener_.fd(), POLLIN, 0}};
  for (const Caller& one : admitted_) entries.push_back({one.socket.get(), POLLIN, 0});
  for (const Callee& one : dialed_) {
    if (one.socket.open()) entries.push_back({one.socket.get(), POLLIN, 0});
  }
  // Short, because deaths, the deadline, full queues and what was put off are looked at in between.
  constexpr int kLookAroundMs = 10;
  poll(entries.data(), entries.size(), kLookAroundMs);
}

void Handshake::admit() {
  while (true) {
    Descriptor socket(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.open()) {
      if (errno == EMFILE) throw lacks_files();
      if (errno == ENFILE) throw Error(Status::no_resource, "cannot admit the ranks of this node" + reason());
      return;
    }
    if (credentials(socket.get()).uid != geteuid()) continue;
    admitted_.push_back({std::move(socket)});
    // Ranks speak as soon as they are connected and dial again when dropped; silent connections are dropped for new
    // ones, never one that waits for its answer.
    constexpr std::size_t kSilentMax = 64;
    if (admitted_.size() <= is_done_.size() + kSilentMax) continue;
    const auto silent = std::ranges::find_if(admitted_, [](const Caller& caller) { return caller.rank < 0; });
    if (silent != admitted_.end()) admitted_.erase(silent);
  }
}

/// A rank whose answer is put off keeps its connection. If it had to dial again, and so had all others, none would get
/// through.
void Handshake::hear_higher_ranks() {
  for (Caller& caller : admitted_) {
    if (caller.rank < 0 && !identifies(caller)) continue;
    if (send_own_hello(caller.socket)) is_done_[static_cast<std::size_t>(caller.rank)] = true;
    if (!was_put_off_) caller.socket = Descriptor();
  }
  std::erase_if(admitted_, [](const Caller& caller) { return !caller.socket.open(); });
}

/// Takes what a higher rank gives. False if the caller has said nothing yet, or is a stranger, whose connection is then
/// closed.
bool Handshake::identifies(Caller& caller) {
  Hello hello;
  Handed handed;
  const Received received = receive(caller.socket, hello, handed);
  if (received == Received::nothing_yet) return false;
  const bool higher = hello.rank > plan_.rank && hello.rank < static_cast<int>(is_done_.size());
  if (received != Received::hello || !accepts(hello) || !higher) {
    caller.socket = Descriptor();
    return false;
  }
  caller.rank = hello.rank;
  take(hello.rank, std::move(handed));
  return true;
}

void Handshake::hear_lower_ranks() {
  for (std::size_t rank = 0; rank < dialed_.size(); ++rank) {
    if (!dialed_[rank].is_told) continue;
    Hello hello;
    Handed handed;
    const Received received = receive(dialed_[rank].socket, hello, handed);
    if (received == Received::nothing_yet) continue;
    const Callee callee = std::exchange(dialed_[rank], Callee());
    const bool right = received == Received::hello && accepts(hello) && hello.rank == static_cast<int>(rank) &&
                       credentials(callee.socket.get()).uid == geteuid();
    if (!right) continue;  // it was dropped; the next round dials again
    take(hello.rank, std::move(handed));
    is_done_[rank] = true;
  }
}

Received Handshake::receive(const Descriptor& socket, Hello& hello, Handed& handed) const {
  const Received received = receive_hello(socket.get(), hello, handed);
  if (received == Received::no_room) throw lacks_files();
  return received;
}

}  // namespace

Error too_few_files(std::size_t peers) {
  return {Status::no_resource, "too many open files: this process may open " + std::to_string(open_files_limit()) +
                                   ", and opens up to " + std::to_string(kFilesPerPeer) + " for each of the " +
                                   std::to_string(peers) +
                                   " other ranks of its node while it joins; raise the limit (ulimit -n)"};
}

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

void hand_over_arenas(const Listener& listener, const HandshakePlan& plan) { Handshake(listener, plan).run(); }

}  // namespace torii::shared_memory
