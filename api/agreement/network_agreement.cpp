// SPDX-License-Identifier: Apache-2.0
// TeamAgreement by AgreementMessages. Survivors have a file of their own.
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

}  // namespace

NetworkAgreement::NetworkAgreement(const Membership& members)
    : members_(members),
      box_(members.transport(), places_of(members), members.rank()),
      messages_(box_, members.timeout_ns()),
      survivors_(box_),
      splits_(members.transport(), messages_, members.rank(), members.ranks(), members.timeout_ns()) {}

void NetworkAgreement::progress() noexcept { (void)members_.transport().progress(); }

void NetworkAgreement::push_out() noexcept { box_.push_out(); }

FailureSign NetworkAgreement::failure_sign() const noexcept { return FailureSign(messages_.alarm()); }

void NetworkAgreement::claim(Status status, int member, const std::string& text, const MemberSet& absent) noexcept {
  messages_.propose(status, member, text, absent);
}

Cause NetworkAgreement::read_cause() noexcept {
  const ControlBlocks::CauseBlock* const cause = messages_.settle();
  if (cause == nullptr) return {Status::internal, kNoCause};
  return {static_cast<Status>(cause->status), cause->text, cause->rank, cause->absent};
}

/// A member of another node has told of one call only, which may not be the one that this rank asks for.
std::optional<CallSnapshot> NetworkAgreement::snapshot_of(int member, std::uint64_t sequence) noexcept {
  if (!members_.is_distant(member)) return read_record(members_.control(member), sequence);
  return messages_.view(member, is_persistent(sequence)).snapshot;
}

bool NetworkAgreement::has_come_to(int member, std::uint64_t sequence) noexcept {
  if (!members_.is_distant(member)) return has_recorded(members_.control(member), sequence);
  return is_at_or_after(messages_.view(member, is_persistent(sequence)).snapshot.sequence, sequence);
}

std::uint64_t NetworkAgreement::completed_by(int member) noexcept {
  if (!members_.is_distant(member)) return members_.control(member).completed.load(std::memory_order_acquire);
  return std::max(messages_.view(member).snapshot.completed, messages_.view(member, true).snapshot.completed);
}

std::int64_t NetworkAgreement::last_attentive_ns(int member) noexcept {
  if (!members_.is_distant(member)) return members_.control(member).last_attentive_ns.load(std::memory_order_relaxed);
  return std::max(messages_.view(member).changed_ns, messages_.view(member, true).changed_ns);
}

void NetworkAgreement::publish(const CallSnapshot& own, std::int64_t now_ns, std::int64_t quiet_since_ns) noexcept {
  messages_.publish(own, now_ns, quiet_since_ns);
  set_must_report_end(messages_.must_report_end());
}

void NetworkAgreement::tell_end(const CallSnapshot& own) noexcept {
  messages_.tell(own);
  set_must_report_end(false);
}

void NetworkAgreement::put_refusal(const RefusalNotice& notice) noexcept { messages_.put_refusal(notice); }

std::span<const RefusalNotice> NetworkAgreement::refusals_of(int member) noexcept { return messages_.refusals(member); }

void NetworkAgreement::put_install(std::uint64_t number, std::uint64_t word) noexcept {
  messages_.put_install(number, word);
}

std::uint64_t NetworkAgreement::install_word(int member, std::uint64_t number) noexcept {
  return messages_.install_word(member, number);
}

bool NetworkAgreement::control_puts_done() const noexcept { return box_.awaited_have_left(); }

void NetworkAgreement::put_epoch(std::uint64_t epoch) noexcept { messages_.put_epoch(epoch); }

bool NetworkAgreement::has_reached(int member, std::uint64_t epoch) noexcept {
  return messages_.has_reached(member, epoch);
}

void NetworkAgreement::leave() noexcept {
  // Relaxed: this rank itself has stored it.
  messages_.leave(members_.control(members_.rank()).completed.load(std::memory_order_relaxed), ControlWriter::kLeft);
}

bool NetworkAgreement::has_departed(int member) noexcept { return messages_.has_departed(member); }

std::optional<std::uint64_t> NetworkAgreement::departed_after(int member) noexcept {
  if (!has_departed(member) || (members_.is_distant(member) && !messages_.has_told_last_call(member))) {
    return std::nullopt;
  }
  return completed_by(member);
}

void NetworkAgreement::depart(std::uint64_t) noexcept {
  messages_.leave(members_.control(members_.rank()).completed.load(std::memory_order_relaxed),
                  ControlWriter::kDeparted);
}

std::vector<PutOwner> NetworkAgreement::take_puts() { return box_.take_puts(); }

std::optional<bool> NetworkAgreement::decide_split(bool agreed) noexcept {
  return splits_.decide(agreed, members_.waiting(), [this](int member) { return members_.lives(member); });
}

}  // namespace torii
