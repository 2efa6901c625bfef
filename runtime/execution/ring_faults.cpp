// SPDX-License-Identifier: Apache-2.0
// Looks at the entries and counts of a call's rings.
#include "runtime/execution/ring_faults.hpp"

#include "runtime/plan/transfer_rules.hpp"

namespace torii {
namespace {

std::uint64_t word_in(const ReceiveEnd& ring, EntryOrder entries, EntryKind kind) noexcept {
  return load_word(ring.entries[static_cast<std::size_t>(kind)] + entries.of(ring.taken) * entry_bytes(kind));
}

/// For a ring from which the call still awaits messages.
LengthFault fault_of(const ReceiveEnd& ring, const RunningCall& call, const LengthEvidence& evidence) noexcept {
  const bool has_ended = evidence.has_ended(ring.rank);  // first: all that the peer has stored is then visible
  bool is_strange = false;
  for (const EntryKind kind : {EntryKind::line, EntryKind::cell, EntryKind::wide_cell}) {
    const std::uint64_t word = word_in(ring, call.entries, kind);
    if (word == signal_word(call.signature, ring.taken)) return {};
    is_strange = is_strange || has_number(word, ring.taken);
  }
  if (!is_strange && !has_ended) return {};
  // Blocks of exchanges are in lines.
  const std::uint64_t word = word_in(ring, call.entries, EntryKind::line);
  for (const std::uint32_t signature : evidence.earlier) {
    const std::size_t bytes = length_in_signal(word, signature, ring.taken);
    if (bytes != 0 && bytes <= kAtOnceBytes) return {ring.peer, true, true, bytes, 0};
  }
  return evidence.is_late ? LengthFault{.peer = ring.peer, .comes_in = true, .is_message = true} : LengthFault{};
}

}  // namespace

LengthFault find_ring_fault(const RunningCall& call, const LengthEvidence& evidence) noexcept {
  const InstalledPlan& plan = *call.plan;
  for (const InstalledIn& in : plan.in) {
    if (in.stream.peer == plan.plan.rank || in.ring.remote() || in.ring.end().taken >= call.end_number(in)) continue;
    const LengthFault fault = fault_of(in.ring.end(), call, evidence);
    if (fault.peer >= 0) return fault;
  }
  // A peer that has ended this call has told of all messages before it but a few.
  for (const InstalledOut& out : plan.out) {
    if (!evidence.is_late || out.stream.peer == plan.plan.rank || out.ring.remote()) continue;
    if (!evidence.has_ended(out.stream.peer)) continue;
    SendEnd& ring = out.ring.end();
    if (ring.first < plan.uses.every_entry || ring.is_taken_below(ring.first - plan.uses.every_entry)) continue;
    return {.peer = ring.peer, .is_message = true};
  }
  const bool is_message = evidence.earlier.empty();
  if (!call.on_rings.lacks_room || (is_message && !evidence.is_late)) return {};
  const Outbox::Reader reader = plan.rings->outbox().awaited();
  if (reader.ring == nullptr || !evidence.has_ended(reader.ring->rank)) return {};
  if (reader.ring->is_taken_below(reader.number)) return {};
  return {.peer = reader.ring->peer, .is_earlier = !is_message, .is_message = is_message};
}

}  // namespace torii
