// SPDX-License-Identifier: Apache-2.0
// The calls of members of other nodes by AgreementMessages, those of mates by shared memory.
#include "api/agreement/network_agreement.hpp"

#include <algorithm>

#include "api/agreement/call_records.hpp"

namespace torii {
namespace {

std::vector<ControlWriter::Member> places_of(const Membership& members) {
  std::vector<ControlWriter::Member> places;
  for (const Member& member : members.all()) {
    places.push_back({member.context_rank, member.memory_offset + agreement_messages_offset()});
  }
  return places;
}

/// The last call that this rank has ended. Relaxed: this rank itself has stored it.
std::uint64_t completed_by_itself(const Membership& members) noexcept {
  return members.control().completed.load(std::memory_order_relaxed);
}

}  // namespace

/// A member of another node has told of one call only, which may not be the one that this rank asks for.
std::optional<CallSnapshot> NetworkCallBoard::snapshot_of(int member, std::uint64_t sequence) noexcept {
  if (!members_.is_distant(member)) return mates_.snapshot_of(member, sequence);
  return messages_.view(member, is_persistent(sequence)).snapshot;
}

bool NetworkCallBoard::has_come_to(int member, std::uint64_t sequence) noexcept {
  if (!members_.is_distant(member)) return mates_.has_come_to(member, sequence);
  return is_at_or_after(messages_.view(member, is_persistent(sequence)).snapshot.sequence, sequence);
}

std::uint64_t NetworkCallBoard::completed_by(int member) noexcept {
  if (!members_.is_distant(member)) return mates_.completed_by(member);
  return std::max(messages_.view(member).snapshot.completed, messages_.view(member, true).snapshot.completed);
}

std::uint64_t NetworkCallBoard::settled_by(int member) noexcept {
  return members_.is_distant(member) ? 0 : mates_.settled_by(member);
}

std::int64_t NetworkCallBoard::last_attentive_ns(int member) noexcept {
  if (!members_.is_distant(member)) return mates_.last_attentive_ns(member);
  return std::max(messages_.view(member).changed_ns, messages_.view(member, true).changed_ns);
}

std::span<const RefusalNotice> NetworkCallBoard::refusals_of(int member) noexcept { return messages_.refusals(member); }

bool NetworkCallBoard::has_departed(int member) noexcept { return messages_.has_departed(member); }

std::optional<std::uint64_t> NetworkCallBoard::departed_after(int member) noexcept {
  if (!has_departed(member) || (members_.is_distant(member) && !messages_.has_told_last_call(member))) {
    return std::nullopt;
  }
  return completed_by(member);
}

void NetworkCallBoard::publish(const CallSnapshot& own, std::int64_t now_ns, std::int64_t quiet_since_ns) noexcept {
  messages_.publish(own, now_ns, quiet_since_ns);
  set_must_report_end(messages_.must_report_end());
}

void NetworkCallBoard::tell_end(const CallSnapshot& own) noexcept {
  messages_.tell(own);
  set_must_report_end(false);
}

void NetworkCallBoard::put_refusal(const RefusalNotice& notice) noexcept { messages_.put_refusal(notice); }

void NetworkCallBoard::leave() noexcept { messages_.leave(completed_by_itself(members_), ControlWriter::kLeft); }

NetworkAgreement::NetworkAgreement(const Membership& members)
    : members_(members),
      box_(members.transport(), places_of(members), members.rank()),
      messages_(box_, members.timeout_ns()),
      calls_(members, messages_),
      vote_(members, box_, messages_) {}

void NetworkAgreement::depart(const TouchedMemory&) noexcept {
  const bool has_closed = members_.transport().closed_engines() != members_.engines_closed_before();
  messages_.leave(completed_by_itself(members_), has_closed ? ControlWriter::kDepartedEarly : ControlWriter::kDeparted);
}

std::vector<PutOwner> NetworkAgreement::take_puts() { return box_.take_puts(); }

}  // namespace torii
