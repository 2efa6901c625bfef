// SPDX-License-Identifier: Apache-2.0
// Finds blocks for which two ranks of a node give unequal lengths, while a call waits.
#include "runtime/execution/pairwise_schedule.hpp"
#include "runtime/execution/ring_faults.hpp"
#include "runtime/fabric/words.hpp"

namespace torii {

/// Finds what contradicts this rank's lengths in the peer's words, for a pair of ranks of one node. In a program whose
/// lengths agree, a message of the awaited number is the awaited one. A peer that has ended the call has sent all that
/// is for this rank, and taken all that is for itself.
template <class Host>
LengthFault PairwiseSchedule<Host>::other_length(const ExchangePeer& peer, const Turn& turn,
                                                 const LengthEvidence& evidence) const noexcept {
  const bool waits_for_block =
      !turn.taken && turn.in_bytes == 0 &&
      !peer.in.ring.arrived(call_.entries, pair_signature(block_from(peer.rank).bytes), peer.taken);
  const bool waits_for_reader = turn.sent && is_read(turn.out_way) && peer.sends && peer.sent != 0;
  if (turn.sent && !waits_for_block && !waits_for_reader) return {};
  // First: all that the peer stored before it ended the call is then visible.
  const bool has_ended = evidence.has_ended(peer.rank);
  const bool has_offer = load_word(peer.own_lines + line_of_offer(peer.offers_made) * kLineBytes) ==
                         signal_word(call_.signature, peer.offers_made);
  if (waits_for_block) {
    const LengthFault found = other_block(peer, turn, evidence, has_ended, has_offer);
    if (found.peer >= 0) return found;
  }
  if (!has_ended) return {};
  const bool is_refused = turn.out_way == Way::through_slots || (turn.out_way == Way::unknown && !has_offer);
  if (!turn.sent && is_refused) return {peer.context_rank, false, false, 0, block_to(peer.rank).bytes};
  // Credits have other numbers than messages if the peer has not taken one of an earlier call.
  if (waits_for_reader && !peer.out.ring.is_taken(call_.entries, peer.sent - 1))
    return {peer.context_rank, false, true, 0, 0};
  return {};
}

/// Whether the awaited block of so many bytes has come behind messages that were not awaited.
template <class Host>
bool PairwiseSchedule<Host>::follows(const ReceiveRing& ring, std::uint64_t number, std::size_t bytes) const noexcept {
  for (std::uint64_t later = number + 1; later < number + call_.entries.count; ++later) {
    if (ring.arrived(call_.entries, pair_signature(bytes), later)) return true;
  }
  return false;
}

/// The same for a block that comes in, of which nothing has been taken.
template <class Host>
LengthFault PairwiseSchedule<Host>::other_block(const ExchangePeer& peer, const Turn& turn,
                                                const LengthEvidence& evidence, bool has_ended,
                                                bool has_offer) const noexcept {
  const std::size_t own_bytes = block_from(peer.rank).bytes;
  const ReceiveRing& ring = peer.in.ring;
  const std::uint64_t word = load_word(ring.place().entries + ring.offset(call_.entries, peer.taken));
  if (word == signal_word(pair_signature(own_bytes), peer.taken)) return {};
  const auto length_in = [&](std::uint32_t signature) {
    const std::size_t bytes = length_in_signal(word, signature, peer.taken);
    return bytes <= kAtOnceBytes ? bytes : 0;
  };
  const std::size_t bytes = length_in(call_.signature);
  if (bytes != 0) return {peer.context_rank, true, false, bytes, own_bytes};
  for (const std::uint32_t signature : evidence.earlier) {
    if (length_in(signature) != 0) return {peer.context_rank, true, true, length_in(signature), 0};
  }
  // The word is of a call too long ago, or of another call, which call records then tell. On a standing ring it may
  // also belong to a call behind this one, which the peer has ended without a block for this rank.
  const bool is_awaited_number = has_number(word, peer.taken);
  if (is_awaited_number && turn.in_way == Way::through_slots && (!has_ended || follows(ring, peer.taken, own_bytes))) {
    return {peer.context_rank, true, true, 0, 0};
  }
  const bool has_come = turn.in_way == Way::unknown ? has_offer : turn.in_way != Way::through_slots;
  return has_ended && !has_come ? LengthFault{peer.context_rank, true, false, 0, own_bytes} : LengthFault{};
}

template <class Host>
bool PairwiseSchedule<Host>::finds_other_length(const LengthEvidence& evidence) noexcept {
  const auto& peers = call_.plan->exchange.peers;
  for (std::size_t i = 0; i < peers.size() && call_.status == Status::ok; ++i) {
    Turn& turn = turns_[i];
    if (peers[i].remote) continue;
    LengthFault found = other_length(peers[i], turn, evidence);
    // Equal blocks have no other lengths: an earlier call is the cause, and may be known.
    found.is_message = call_.buffers.blocks == nullptr && !(found.is_earlier && found.peer_bytes != 0);
    if (found.peer >= 0 && (evidence.is_late || !found.is_message)) {
      length_fault_ = found;
      call_.note(Status::mismatch, found.peer);
    } else if (!turn.makes_offer && !(turn.sent && turn.taken)) {
      (void)match(peers[i], turn);  // a peer that makes an offer has another length for one of the two blocks
    }
  }
  return call_.status != Status::ok;
}

template <class Host>
bool PairwiseSchedule<Host>::finds_ring_fault(const LengthEvidence& evidence) noexcept {
  const LengthFault found = find_ring_fault(call_, evidence);
  if (found.peer < 0) return false;
  length_fault_ = found;
  call_.note(Status::mismatch, found.peer);
  return true;
}

template LengthFault PairwiseSchedule<RealHost>::other_length(const ExchangePeer&, const Turn&,
                                                              const LengthEvidence&) const noexcept;
template LengthFault PairwiseSchedule<RealHost>::other_block(const ExchangePeer&, const Turn&, const LengthEvidence&,
                                                             bool, bool) const noexcept;
template bool PairwiseSchedule<RealHost>::follows(const ReceiveRing&, std::uint64_t, std::size_t) const noexcept;
template bool PairwiseSchedule<RealHost>::finds_other_length(const LengthEvidence&) noexcept;
template bool PairwiseSchedule<RealHost>::finds_ring_fault(const LengthEvidence&) noexcept;
template LengthFault PairwiseSchedule<ModelledHost>::other_length(const ExchangePeer&, const Turn&,
                                                                  const LengthEvidence&) const noexcept;
template LengthFault PairwiseSchedule<ModelledHost>::other_block(const ExchangePeer&, const Turn&,
                                                                 const LengthEvidence&, bool, bool) const noexcept;
template bool PairwiseSchedule<ModelledHost>::follows(const ReceiveRing&, std::uint64_t, std::size_t) const noexcept;
template bool PairwiseSchedule<ModelledHost>::finds_other_length(const LengthEvidence&) noexcept;
template bool PairwiseSchedule<ModelledHost>::finds_ring_fault(const LengthEvidence&) noexcept;

}  // namespace torii
