// SPDX-License-Identifier: Apache-2.0
// Finds out whether peers still exist, whether transfers are under way, and whether the rank may sleep.
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/base/descriptor.hpp"
#include "transports/libfabric/engine.hpp"
#include "transports/libfabric/notice.hpp"

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
/// The part of a sleep after which transfers that the provider has refused are tried again.
constexpr int kRefusedShare = 4;

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

/// Writes eight bytes into the peer's bell. Their completion says that they and all earlier writes have arrived.
void Engine::send_confirmed(int peer) noexcept {
  Target& to = target(peer);
  Transfer transfer;
  transfer.peer = peer;
  transfer.confirms = true;
  transfer.source = own_memory_ + zeros_offset();
  transfer.bytes = sizeof(std::uint64_t);
  transfer.address = to.bell_base;
  transfer.key = to.bell_key;
  ++to.confirming;
  if (send(transfer) != Status::ok) --to.confirming;
}

void Engine::greet(int peer) noexcept {
  const std::lock_guard lock(mutex_);
  target(peer).is_greeted = true;
  say(peer, kHere);
}

void Engine::take_leave(int peer) noexcept {
  const std::lock_guard lock(mutex_);
  say(peer, kLeaving);
}

void Engine::say(int peer, std::uint64_t greeting) noexcept {
  if (is_cut(peer)) return;
  Transfer transfer;
  transfer.peer = peer;
  transfer.notifies = greeting == kHere || !needs_parting_;
  transfer.is_temporary = true;
  transfer.source = reinterpret_cast<const std::byte*>(&greeting);
  transfer.bytes = sizeof(greeting);
  transfer.address = target(peer).bell_base + greeting_offset(shared_.rank);
  transfer.key = target(peer).bell_key;
  transfer.notice = make_notice(NoticeAction::wake, 0);
  (void)start(transfer);  // the states of the peers record a failure
}

void Engine::flush() noexcept {
  const std::lock_guard lock(mutex_);
  for (std::size_t peer = 0; peer < targets_.size(); ++peer) {
    if (targets_[peer].used) send_confirmed(static_cast<int>(peer));
  }
}

bool Engine::probe(int peer, std::int64_t now_ns) noexcept {
  if (!shared_.probes) return true;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return true;
  Target& to = target(peer);
  if (!to.used || is_cut(peer)) return false;
  const std::int64_t quiet_ns = now_ns - to.probed_ns;
  if (to.confirming == 0) {
    if (quiet_ns < probe_every_ns(used_targets_)) return true;
    to.probed_ns = now_ns;
    to.patience_ns = kPatienceNs;
    send_confirmed(peer);
  } else if (quiet_ns > to.patience_ns) {
    to.patience_ns *= 2;
    (void)ask_listener(peer);
  }
  return true;
}

void Engine::doubt(int peer, std::int64_t now_ns) noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || is_cut(peer)) return;
  Target& to = target(peer);
  if (now_ns - to.doubted_ns < kDoubtEveryNs) return;
  to.doubted_ns = now_ns;
  if (to.doubted_since_ns == 0) to.doubted_since_ns = now_ns;
  const bool listens = ask_listener(peer);
  if (now_ns - to.doubted_since_ns < kDoubtNs || is_cut(peer)) return;
  // A listener ends with its process, and answers for a peer that is in no call.
  if (listens) {
    shared_.peers.answered(peer);
  } else if (to.confirming == 0) {
    to.is_asked = true;
    send_confirmed(peer);
  }
}

/// True if the peer's host says that it listens. If the host says that it does not, the peer is cut off. Providers over
/// sockets retry refused connections for ever, without a report.
bool Engine::ask_listener(int peer) noexcept {
  if (!has_listener_) return false;
  const Answer answer = ask_host(target(peer).address_bytes.data());
  if (answer == Answer::refuses) (void)fail(peer, FI_ECONNREFUSED, sizeof(std::uint64_t));
  return answer == Answer::listens;
}

/// A provider that finds no listener takes nothing more for that peer, without a report. Transfers to a dead peer that
/// nobody asks about would prevent this rank from ever being drained.
void Engine::ask_about_waiting(std::int64_t now_ns) noexcept {
  if (now_ns - asked_ns_ < kLookEveryNs) return;
  asked_ns_ = now_ns;
  for (std::size_t peer = 0; peer < targets_.size(); ++peer) {
    Target& to = targets_[peer];
    if (to.waiting == 0 || is_cut(static_cast<int>(peer))) {
      to.waits_since_ns = 0;
    } else if (to.waits_since_ns == 0) {
      to.waits_since_ns = now_ns;
      to.waits_patience_ns = kWaitingPatienceNs;
    } else if (now_ns - to.waits_since_ns > to.waits_patience_ns) {
      to.waits_patience_ns *= 2;
      (void)ask_listener(static_cast<int>(peer));
    }
  }
}

bool Engine::is_quiet(bool but_for_confirmed) noexcept {
  if (open_.load(std::memory_order_acquire) == 0) return true;
  const std::lock_guard lock(mutex_);
  for (std::size_t peer = 0; peer < targets_.size(); ++peer) {
    const Target& to = targets_[peer];
    const std::uint32_t allowed = but_for_confirmed ? to.confirming : 0;
    if (to.in_flight + to.waiting > allowed && !is_cut(static_cast<int>(peer))) return false;
  }
  return true;
}

bool Engine::may_sleep(int& most_us) noexcept {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return true;
  if (!receives_owed_.empty()) return false;
  // No event says when the provider would take a refused transfer: a socket is full, or a peer has yet to answer.
  if (!waiting_.empty()) most_us = std::max(most_us / kRefusedShare, 1);
  // A permission to sleep is valid until something is put or arrives. Data that an idle poll leaves unread is in
  // sockets, and the descriptor shows that they are readable.
  if (!is_armed_) {
    fid* objects[] = {waited()};
    is_armed_ = fi_trywait(opened_.fabric.get(), objects, 1) == 0;
  }
  return is_armed_;
}

}  // namespace torii::libfabric
