// SPDX-License-Identifier: Apache-2.0
// Greets peers and takes leave of them, asks them and answers.
#include "transports/ucx/liveness.hpp"

#include <array>

namespace torii::ucx {

Liveness::Liveness(Worker& worker, Writes& writes, const Shared& shared)
    : worker_(worker), writes_(writes), shared_(shared), peers_(static_cast<std::size_t>(shared.ranks)) {
  worker.listen(kAsk, &Liveness::on_ask, this);
  worker.listen(kAnswer, &Liveness::on_answer, this);
  worker.listen(kGreeting, &Liveness::on_greeting, this);
  worker.listen(kFarewell, &Liveness::on_farewell, this);
}

/// The greeting has a payload. Before the first message that does not fit into the shortest form of a packet, UCX asks
/// the peer for its end of the connection. The answer needs the peer's progress().
void Liveness::greet(int peer) noexcept {
  static constexpr std::array<std::byte, kMessageMost> kPayload{};
  // The states of the peers record a failure.
  (void)writes_.send(peer, kGreeting, {0, 0, static_cast<std::uint64_t>(shared_.rank)}, kPayload.data(),
                     kPayload.size());
}

void Liveness::say(int peer, MessageId id) noexcept {
  writes_.use(peer);
  (void)writes_.send(peer, id, {0, 0, static_cast<std::uint64_t>(shared_.rank)}, nullptr, 0);
}

/// Messages of one engine arrive in order, so the answer to the last one covers all.
void Liveness::ask(int peer) noexcept {
  ++of(peer).asked;
  say(peer, kAsk);
}

void Liveness::flush() noexcept {
  for (int peer = 0; peer < shared_.ranks; ++peer) {
    if (!writes_.is_used(peer) || writes_.is_cut(peer)) continue;
    if (worker_.device().manner().puts) writes_.flush(peer);
    ask(peer);
  }
}

bool Liveness::confirmed() const noexcept {
  for (int peer = 0; peer < shared_.ranks; ++peer) {
    const Peer& one = peers_[static_cast<std::size_t>(peer)];
    if (one.asked != one.answered && !writes_.is_cut(peer)) return false;
  }
  return true;
}

void Liveness::doubt(int peer) noexcept {
  Peer& one = of(peer);
  if (writes_.is_cut(peer) || one.asked != one.answered) return;
  one.is_doubted = true;
  ask(peer);
}

void Liveness::give_answers() noexcept {
  owes_answers_ = false;
  for (int peer = 0; peer < shared_.ranks; ++peer) {
    for (std::uint32_t& owed = of(peer).owed; owed != 0; --owed) say(peer, kAnswer);
  }
}

int Liveness::sender_of(const void* header, std::size_t header_bytes) noexcept {
  if (!worker_.is_ours(header, header_bytes)) return -1;
  const int sender = read_sender(header, header_bytes, shared_.ranks);
  if (sender >= 0 && sender != shared_.rank) return sender;
  worker_.failures().break_down("got a question that no rank asks");
  return -1;
}

ucs_status_t Liveness::on_ask(void* liveness, const void* header, std::size_t header_bytes, void*, std::size_t,
                              const ucp_am_recv_param_t*) {
  Liveness& self = *static_cast<Liveness*>(liveness);
  if (const int peer = self.sender_of(header, header_bytes); peer >= 0) {
    ++self.of(peer).owed;
    self.owes_answers_ = true;
  }
  return UCS_OK;
}

ucs_status_t Liveness::on_answer(void* liveness, const void* header, std::size_t header_bytes, void*, std::size_t,
                                 const ucp_am_recv_param_t*) {
  Liveness& self = *static_cast<Liveness*>(liveness);
  const int peer = self.sender_of(header, header_bytes);
  if (peer < 0) return UCS_OK;
  Peer& from = self.of(peer);
  ++from.answered;
  if (from.is_doubted && from.answered == from.asked) {
    from.is_doubted = false;
    self.shared_.peers.answered(peer);
  }
  return UCS_OK;
}

ucs_status_t Liveness::on_greeting(void* liveness, const void* header, std::size_t header_bytes, void*, std::size_t,
                                   const ucp_am_recv_param_t*) {
  Liveness& self = *static_cast<Liveness*>(liveness);
  if (const int peer = self.sender_of(header, header_bytes); peer >= 0) self.of(peer).greeted = true;
  return UCS_OK;
}

ucs_status_t Liveness::on_farewell(void* liveness, const void* header, std::size_t header_bytes, void*, std::size_t,
                                   const ucp_am_recv_param_t*) {
  Liveness& self = *static_cast<Liveness*>(liveness);
  if (const int peer = self.sender_of(header, header_bytes); peer >= 0) self.of(peer).left = true;
  return UCS_OK;
}

}  // namespace torii::ucx
