// SPDX-License-Identifier: Apache-2.0
// Rank 0: an event loop that admits ranks and refuses strangers, with bounded memory and time for each connection.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <deque>
#include <set>
#include <utility>

#include "runtime/base/log.hpp"
#include "runtime/base/status.hpp"
#include "runtime/bootstrap/job_socket.hpp"
#include "runtime/bootstrap/tcp.hpp"
#include "runtime/devices/open_files.hpp"

namespace torii {
namespace {

/// A connection that has not proved the key after this time is dropped. A rank sends as soon as it is connected.
constexpr double kPatienceS = 5;
/// The most connections of each kind, silent and challenged, in addition to one for each rank.
constexpr std::size_t kPendingMax = 64;
/// The most connections accepted before the pending ones are read again.
constexpr int kAcceptedMost = 64;
/// How long rank 0 stays to tell the others that it cannot have a connection to each of them. Ranks start together.
constexpr double kRefusesS = 2;
/// The most different log lines about refused connections; a stranger must not fill a log.
constexpr std::size_t kComplaintsMax = 8;

/// A connection that has not proved the key yet.
struct Pending {
  OwnDescriptor socket;
  Deadline deadline;
  bool challenged = false;
  std::size_t have = 0;  ///< bytes of the awaited message
  wire::Hello hello;
  wire::Challenge challenge;
  wire::Response response;
};

template <class Message>
bool send_message(int socket, const Message& message) {
  // The socket's buffer is empty and larger than any message, so sending fails only if the connection is broken.
  return send(socket, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(sizeof(message));
}

template <class Message>
Received receive_message(int socket, Message& message, std::size_t& have) {
  const ssize_t got = recv(socket, reinterpret_cast<char*>(&message) + have, sizeof(message) - have, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Received::nothing_yet;
  if (got <= 0) return Received::closed;
  have += static_cast<std::size_t>(got);
  if (have < sizeof(message)) return Received::nothing_yet;
  have = 0;
  return Received::some;
}

/// This process cannot have a connection to each of the other ranks.
Error too_few_descriptors(int ranks) {
  return {Status::no_resource,
          "rank 0 needs a connection to each of the " + std::to_string(ranks - 1) +
              " other ranks, but its limit of open files is " + std::to_string(open_files_limit()) +
              "; raise the limit (ulimit -n)",
          0};
}

bool has_caller(int listener) {
  pollfd entry{listener, POLLIN, 0};
  return poll(&entry, 1, 0) > 0;
}

std::string name_of(const wire::Hello& hello) { return "a connection as rank " + std::to_string(hello.rank); }

class Admission {
 public:
  Admission(const TcpIdentity& identity, std::vector<Descriptor> listeners, const wire::Key& key)
      : identity_(identity),
        listeners_(std::move(listeners)),
        key_(key),
        links_(static_cast<std::size_t>(identity.ranks)),
        is_told_(static_cast<std::size_t>(identity.ranks)) {
    for (const Descriptor& one : listeners_) {
      where_ += (where_.empty() ? "" : ", ") + Address::of_socket(one.get()).text();
    }
  }

  std::vector<TcpLink> run() {
    // Asked before any connection is accepted: later, strangers would take the descriptors, and could end the job.
    const std::size_t needed = links_.size() - 1;
    refuses_all_ = needed != 0 && !may_open_files(needed);
    Deadline deadline =
        Deadline::after_s(refuses_all_ ? std::min(kRefusesS, identity_.timeout_s) : identity_.timeout_s);
    for (std::vector<int> missing = missing_ranks(); !missing.empty(); missing = missing_ranks()) {
      if (deadline.is_over() && refuses_all_) break;
      if (deadline.is_over()) throw too_late(missing);
      wait(deadline);
      // Pending connections are read before new ones are accepted, which may displace them.
      for (Pending& one : std::exchange(challenged_, {})) hear_and_keep(std::move(one));
      for (Pending& one : std::exchange(silent_, {})) hear_and_keep(std::move(one));
      for (const Descriptor& listener : listeners_) accept_from(listener.get());
    }
    if (refuses_all_) throw too_few_descriptors(identity_.ranks);
    return std::move(links_);
  }

 private:
  std::vector<int> missing_ranks() const {
    std::vector<int> missing;
    for (int rank = 1; rank < identity_.ranks; ++rank) {
      if (!is_told_[static_cast<std::size_t>(rank)]) missing.push_back(rank);
    }
    return missing;
  }
  Error too_late(const std::vector<int>& missing);
  void tell_admitted(const Error& error);
  void wait(const Deadline& deadline);
  void accept_from(int listener);
  void hear_and_keep(Pending one);
  bool hear(Pending& one);
  bool challenge(Pending& one);
  bool judge(Pending& one);
  void complain(const std::string& sentence);

  const TcpIdentity& identity_;
  std::vector<Descriptor> listeners_;
  wire::Key key_;
  bool refuses_all_ = false;  ///< there are too few descriptors
  std::vector<TcpLink> links_;
  std::vector<bool> is_told_;  ///< by rank: it is admitted, or knows why nobody is
  /// Oldest first. A rank sends its Hello right after connecting, so it is silent only if its process waits for a CPU
  /// between the two system calls. A challenged connection knows the job's key, or repeats a recorded Hello. A new
  /// connection displaces only one of its own kind, so strangers cannot displace a rank that has been challenged.
  std::deque<Pending> silent_;
  std::deque<Pending> challenged_;
  std::string where_;
  std::string last_complaint_;
  std::set<std::string> complaints_;
};

/// Sends the error to the admitted ranks and returns it.
Error Admission::too_late(const std::vector<int>& missing) {
  std::string sentence = ranks_text(missing) + " not joined in time; rank 0 listens on " + where_;
  if (!last_complaint_.empty()) sentence += "; it last refused: " + last_complaint_;
  Error error(Status::timeout, sentence, missing[0]);
  tell_admitted(error);
  return error;
}

void Admission::tell_admitted(const Error& error) {
  const std::string sentence = error.what();
  wire::FrameHead head;
  head.status = static_cast<std::int32_t>(error.status());
  head.rank = error.rank();
  head.round = 1;
  head.bytes = sentence.size();
  const auto payload = std::as_bytes(std::span(sentence));
  for (const TcpLink& link : links_) {
    if (!link.socket.open()) continue;
    const wire::Proof proof = wire::seal(link.send_key, head, payload);
    std::string message(reinterpret_cast<const char*>(&head), sizeof(head));
    message += sentence;
    message.append(reinterpret_cast<const char*>(&proof), sizeof(proof));
    // The buffer of a new connection has room for the message. A rank that does not get it reaches its own deadline.
    if (send(link.socket.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) continue;
  }
}

void Admission::wait(const Deadline& deadline) {
  int nap_ms = deadline.nap_ms(1000);
  std::vector<pollfd> entries;
  for (const Descriptor& one : listeners_) entries.push_back({one.get(), POLLIN, 0});
  for (const std::deque<Pending>* kind : {&silent_, &challenged_}) {
    for (const Pending& one : *kind) {
      entries.push_back({one.socket.get(), POLLIN, 0});
      nap_ms = one.deadline.nap_ms(nap_ms);
    }
  }
  poll(entries.data(), entries.size(), nap_ms);
}

void Admission::accept_from(int listener) {
  // A bounded number: a peer that connects faster than rank 0 accepts must not stop it from reading the others.
  for (int accepted = 0; accepted < kAcceptedMost; ++accepted) {
    OwnDescriptor socket = OwnDescriptor::of(
        [&] { return Descriptor(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)); });
    if (socket.open()) {
      hear_and_keep({std::move(socket), Deadline::after_s(kPatienceS), false, 0, {}, {}, {}});
      continue;
    }
    if (errno != EMFILE && errno != ENFILE) return;
    // The kernel looks for a descriptor first: it may lack one for nobody, and then none makes room.
    if (!has_caller(listener)) return;
    if (silent_.empty() && challenged_.empty()) throw too_few_descriptors(identity_.ranks);
    (silent_.empty() ? challenged_ : silent_).pop_front();
  }
}

/// Reads a connection. If it stays pending and there is no room, drops the oldest of its kind; a dropped rank dials
/// again.
void Admission::hear_and_keep(Pending one) {
  if (!hear(one)) return;
  std::deque<Pending>& kind = one.challenged ? challenged_ : silent_;
  kind.push_back(std::move(one));
  if (kind.size() > links_.size() + kPendingMax) kind.pop_front();
}

/// False if the connection must be dropped, or has become a link.
bool Admission::hear(Pending& one) {
  if (one.deadline.is_over()) return false;
  if (one.challenged) {
    const Received received = receive_message(one.socket.get(), one.response, one.have);
    if (received == Received::some) return judge(one);
    return received == Received::nothing_yet;
  }
  const Received received = receive_message(one.socket.get(), one.hello, one.have);
  if (received == Received::closed) return false;
  // A Hello of another version may be shorter, so the version is checked before the rest has arrived.
  const bool has_version = received == Received::some || one.have >= offsetof(wire::Hello, reserved);
  if (has_version && one.hello.magic != wire::kMagic) return false;
  if (has_version && one.hello.version != wire::kVersion) {
    send_message(one.socket.get(), one.challenge);
    return false;
  }
  return received == Received::nothing_yet || challenge(one);
}

/// The Hello has arrived: sends a challenge or a refusal. False if the connection must be dropped.
bool Admission::challenge(Pending& one) {
  const wire::Hello& hello = one.hello;
  if (hello.rank < 1) return false;
  if (!wire::equal(hello.mark, wire::mark_of(key_, hello))) {
    one.challenge.refusal = wire::Refusal::token;
    send_message(one.socket.get(), one.challenge);
    complain(name_of(hello) + " was refused: its job token differs from that of rank 0");
    return false;
  }
  // A repeated Hello gets no second connection.
  if (std::ranges::any_of(challenged_, [&](const Pending& each) { return each.hello.nonce == hello.nonce; }))
    return false;
  one.challenge.nonce = wire::random_nonce();
  one.challenged = true;
  return send_message(one.socket.get(), one.challenge);
}

/// The proof has arrived: admits the rank or sends a refusal. Always false: the connection is no longer pending.
bool Admission::judge(Pending& one) {
  const wire::Hello& hello = one.hello;
  const std::string who = name_of(hello);
  wire::Verdict verdict;
  verdict.ranks = identity_.ranks;
  std::string complaint;
  if (!wire::equal(one.response.proof, wire::prove(key_, "rank", hello, one.challenge))) {
    verdict.refusal = wire::Refusal::token;
    complaint = who + " was refused: its job token differs from that of rank 0";
  } else if (hello.ranks != identity_.ranks || hello.rank >= identity_.ranks) {
    verdict.refusal = wire::Refusal::ranks;
    complaint = who + " was refused: it counts " + std::to_string(hello.ranks) + " ranks and rank 0 counts " +
                std::to_string(identity_.ranks);
  } else if (links_[static_cast<std::size_t>(hello.rank)].socket.open()) {
    verdict.refusal = wire::Refusal::taken;
    complaint = who + " was refused: that rank has joined already";
  } else if (refuses_all_) {
    verdict.refusal = wire::Refusal::descriptors;
  } else {
    verdict.proof = wire::prove(key_, "rank 0", hello, one.challenge);
  }
  const bool sent = send_message(one.socket.get(), verdict);
  if (!complaint.empty()) complain(complaint);
  if (!sent || !complaint.empty()) return false;
  is_told_[static_cast<std::size_t>(hello.rank)] = true;
  if (refuses_all_) return false;
  TcpLink& link = links_[static_cast<std::size_t>(hello.rank)];
  link.send_key = wire::session_key(key_, "rank 0", hello, one.challenge);
  link.reader = wire::FrameReader(wire::session_key(key_, "rank", hello, one.challenge), job_socket::kPartBytesMax);
  link.socket = std::move(one.socket);
  return false;
}

void Admission::complain(const std::string& sentence) {
  last_complaint_ = sentence;
  if (complaints_.size() == kComplaintsMax || !complaints_.insert(sentence).second) return;
  log(LogLevel::error, sentence + " (rank 0 listens on " + where_ + ")");
}

}  // namespace

std::string ranks_text(const std::vector<int>& ranks) {
  constexpr std::size_t kNamedMax = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(ranks.size(), kNamedMax); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  if (ranks.size() > kNamedMax) text += " and " + std::to_string(ranks.size() - kNamedMax) + " more";
  return text + (ranks.size() == 1 ? " has" : " have");
}

std::vector<TcpLink> admit_ranks(const TcpIdentity& identity, std::vector<Descriptor> listeners, const wire::Key& key) {
  return Admission(identity, std::move(listeners), key).run();
}

}  // namespace torii
