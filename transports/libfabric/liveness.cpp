// SPDX-License-Identifier: Apache-2.0
// Greets peers and takes leave of them, and finds out whether they still exist.
#include "transports/libfabric/liveness.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include "runtime/base/descriptor.hpp"
#include "transports/libfabric/notice.hpp"
#include "transports/libfabric/providers.hpp"

namespace torii::libfabric {
namespace {

constexpr std::int64_t kProbeEveryNs = 20'000'000;
constexpr std::int64_t kProbePeersFew = 4;
constexpr std::int64_t kProbeMostNs = 4'000'000'000;
/// How late an answer is before the peer's host is asked. Doubled each time: a peer that computes answers nobody, and
/// the question stays in the queue of its listener.
constexpr std::int64_t kPatienceNs = 200'000'000;
/// The same if the provider does not take a transfer at all: it is busy, or has nobody to connect to.
constexpr std::int64_t kWaitingPatienceNs = 20'000'000;
constexpr std::int64_t kLookEveryNs = 5'000'000;
constexpr std::int64_t kDoubtEveryNs = 10'000'000;
/// Only after this time does an answer prove that the peer lives: a process that ends closes its engines one after the
/// other.
constexpr std::int64_t kDoubtNs = 200'000'000;

/// How often one of `n` peers is asked. An answer takes time of both ranks, and ranks that wait for a late rank all ask
/// each other. With many peers a rank therefore asks fewer of them per second. A dead rank is still asked by some peer
/// after an n-th of this time.
std::int64_t probe_every_ns(std::int64_t peers) noexcept {
  const std::int64_t alone_ns = kProbeEveryNs * peers;
  return std::max(alone_ns, std::min(alone_ns * peers / kProbePeersFew, kProbeMostNs));
}

enum class Answer { none, listens, refuses };

/// Asks the host whether a listener has this socket address. A connection that succeeds is reset, not closed. After a
/// silent close, tcp (libfabric 1.17) waits for the first message for ever, and the descriptor on which its rank sleeps
/// stays readable.
Answer ask_host(const std::byte* address) noexcept {
  constexpr int kAnswerMostMs = 20;
  sockaddr_storage to{};
  std::memcpy(&to, address, sizeof(sockaddr_in6));
  const socklen_t bytes = to.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  const Descriptor asking(socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const linger reset = {1, 0};
  if (!asking.open() || setsockopt(asking.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) != 0) {
    return Answer::none;
  }
  int error = connect(asking.get(), reinterpret_cast<const sockaddr*>(&to), bytes) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd entry{asking.get(), POLLOUT, 0};
    socklen_t size = sizeof(error);
    if (poll(&entry, 1, kAnswerMostMs) <= 0) return Answer::none;
    if (getsockopt(asking.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) return Answer::none;
  }
  return error == 0 ? Answer::listens : error == ECONNREFUSED ? Answer::refuses : Answer::none;
}

}  // namespace

Liveness::Liveness(Writes& writes, const OwnMemory& own, const Shared& shared, const fi_info& info)
    : writes_(writes),
      own_(own),
      shared_(shared),
      has_listener_(listens_on_tcp(info.fabric_attr->prov_name, info.addr_format)) {}

void Liveness::connect(std::vector<SocketAddress> addresses, bool needs_parting) {
  needs_parting_ = needs_parting;
  addresses_ = std::move(addresses);
  peers_.resize(addresses_.size());
}

std::vector<SocketAddress> Liveness::addresses_of_peers() const noexcept {
  try {
    std::vector<SocketAddress> peers;
    for (std::size_t rank = 0; has_listener_ && rank < addresses_.size(); ++rank) {
      if (static_cast<int>(rank) != shared_.rank) peers.push_back(addresses_[rank]);
    }
    return peers;
  } catch (const std::exception&) {
    return {};
  }
}

void Liveness::send_confirmed(int peer) noexcept {
  Target& to = writes_.target(peer);
  Transfer transfer;
  transfer.peer = peer;
  transfer.confirms = true;
  transfer.source = own_.zeros();
  transfer.bytes = sizeof(std::uint64_t);
  transfer.is_to_own = true;
  ++to.confirming;
  if (writes_.is_cut(peer) || writes_.start(transfer) != Status::ok) --to.confirming;
}

void Liveness::greet(int peer) noexcept {
  of(peer).is_greeted = true;
  say(peer, kHere);
}

void Liveness::say(int peer, std::uint64_t greeting) noexcept {
  if (writes_.is_cut(peer)) return;
  Transfer transfer;
  transfer.peer = peer;
  transfer.notifies = greeting == kHere || !needs_parting_;
  transfer.is_temporary = true;
  transfer.source = reinterpret_cast<const std::byte*>(&greeting);
  transfer.bytes = sizeof(greeting);
  transfer.is_to_own = true;
  transfer.offset = OwnMemory::greeting_offset(shared_.rank);
  transfer.notice = make_notice(NoticeAction::wake, 0);
  (void)writes_.start(transfer);  // the states of the peers record a failure
}

bool Liveness::knows_anybody() const noexcept {
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    if (peers_[rank].is_greeted || is_greeted(static_cast<int>(rank))) return true;
  }
  return false;
}

bool Liveness::have_all_gone() const noexcept {
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    const std::uint64_t said = own_.greeting(static_cast<int>(rank));
    if ((peers_[rank].is_greeted || said != 0) && said != kGone) return false;
  }
  return true;
}

void Liveness::flush() noexcept {
  for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
    if (writes_.targets()[peer].is_used) send_confirmed(static_cast<int>(peer));
  }
}

bool Liveness::probe(int peer, std::int64_t now_ns) noexcept {
  Peer& one = of(peer);
  const Target& to = writes_.target(peer);
  if (!to.is_used || writes_.is_cut(peer)) return false;
  const std::int64_t quiet_ns = now_ns - one.probed_ns;
  if (to.confirming == 0) {
    if (quiet_ns < probe_every_ns(writes_.used_targets())) return true;
    one.probed_ns = now_ns;
    one.patience_ns = kPatienceNs;
    send_confirmed(peer);
  } else if (quiet_ns > one.patience_ns) {
    one.patience_ns *= 2;
    (void)ask_listener(peer);
  }
  return true;
}

void Liveness::doubt(int peer, std::int64_t now_ns) noexcept {
  if (writes_.is_cut(peer)) return;
  Peer& one = of(peer);
  if (now_ns - one.doubted_ns < kDoubtEveryNs) return;
  one.doubted_ns = now_ns;
  if (one.doubted_since_ns == 0) one.doubted_since_ns = now_ns;
  const bool listens = ask_listener(peer);
  if (now_ns - one.doubted_since_ns < kDoubtNs || writes_.is_cut(peer)) return;
  // A listener ends with its process, and answers for a peer that is in no call.
  if (listens) {
    shared_.peers.answered(peer);
  } else if (Target& to = writes_.target(peer); to.confirming == 0) {
    to.is_asked = true;
    send_confirmed(peer);
  }
}

/// Providers over sockets retry refused connections for ever, without a report.
bool Liveness::ask_listener(int peer) noexcept {
  if (!has_listener_) return false;
  const Answer answer = ask_host(addresses_[static_cast<std::size_t>(peer)].data());
  if (answer == Answer::refuses) (void)writes_.fail(peer, FI_ECONNREFUSED, sizeof(std::uint64_t));
  return answer == Answer::listens;
}

void Liveness::ask_about_waiting(std::int64_t now_ns) noexcept {
  if (now_ns - asked_ns_ < kLookEveryNs) return;
  asked_ns_ = now_ns;
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    Peer& one = peers_[rank];
    const int peer = static_cast<int>(rank);
    if (writes_.target(peer).waiting == 0 || writes_.is_cut(peer)) {
      one.waits_since_ns = 0;
    } else if (one.waits_since_ns == 0) {
      one.waits_since_ns = now_ns;
      one.waits_patience_ns = kWaitingPatienceNs;
    } else if (now_ns - one.waits_since_ns > one.waits_patience_ns) {
      one.waits_patience_ns *= 2;
      (void)ask_listener(peer);
    }
  }
}

}  // namespace torii::libfabric
