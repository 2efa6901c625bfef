// SPDX-License-Identifier: Apache-2.0
// Control blocks of the rounds about survivors: puts them, and passes on those of others.
#include "api/agreement/survivor_messages.hpp"

#include <cstring>

namespace torii {
namespace {

constexpr int kMissedShift = 8;  ///< of PeerInbox::missed

/// Where the payload of a block begins.
constexpr std::size_t kPayload = kLineBytes;

}  // namespace

void check_proposal(int member, std::uint64_t memory_offset, std::size_t bytes, std::uint64_t arena_bytes) {
  if (bytes <= arena_bytes && memory_offset <= arena_bytes - bytes && memory_offset % kLineBytes == 0) return;
  throw Error(Status::transport,
              "rank " + std::to_string(member) + " offers " + std::to_string(bytes) + " bytes at offset " +
                  std::to_string(memory_offset) + " of its arena, which has " + std::to_string(arena_bytes) +
                  " bytes, to the new team",
              member);
}

const ControlBlocks::Ending* SurvivorMessages::left_by(int member, std::size_t round) const noexcept {
  for (ControlBlocks::Ending ControlBlocks::Round::*part : {&ControlBlocks::Round::made, &ControlBlocks::Round::left}) {
    const ControlBlocks::Round& own = box_.own().outbox.rounds[round];
    const ControlBlocks::Ending* const ending =
        member == box_.rank() ? &(own.*part) : box_.arrived(member, round, part);
    if (ending != nullptr && ending->failure.status != 0) return ending;
  }
  return nullptr;
}

bool SurvivorMessages::has_ended(std::size_t round) const noexcept {
  for (int member = 0; member < box_.ranks(); ++member) {
    if (counts(member) && left_by(member, round) != nullptr) return true;
  }
  return false;
}

bool SurvivorMessages::begin(const MemberSet& without) noexcept {
  without_ = without;
  while (next_ < ControlBlocks::kRounds && has_ended(next_)) ++next_;
  if (next_ == ControlBlocks::kRounds) return false;
  round_ = next_++;
  has_decided_ = has_made_ = has_left_ = false;
  return true;
}

template <class Part>
void SurvivorMessages::put(std::size_t offset_in_round, const Part& part) noexcept {
  box_.put_copies({.offset = offsetof(ControlBlocks, rounds) + round_ * sizeof(ControlBlocks::Round) + offset_in_round,
                   .signal = ControlBlocks::kIsThere,
                   .payload = reinterpret_cast<const std::byte*>(&part) + kPayload,
                   .bytes = sizeof(Part) - kPayload});
}

void SurvivorMessages::put_proposal(const SurvivorProposal& proposed) noexcept {
  own().proposal.proposal = proposed;
  put(offsetof(ControlBlocks::Round, proposal), own().proposal);
  const std::size_t first = offsetof(PeerInbox, probes) + round_ * sizeof(PeerInbox::probes[0]);
  for (int engine = 0; engine < box_.engines(); ++engine) {
    box_.put({.engine = engine,
              .offset = first + static_cast<std::size_t>(engine) * sizeof(std::uint64_t),
              .signal = ControlBlocks::kIsThere});
  }
}

const SurvivorProposal* SurvivorMessages::proposal(int member) const noexcept {
  if (member == box_.rank()) return &box_.own().outbox.rounds[round_].proposal.proposal;
  const ControlBlocks::ProposalBlock* const proposal = arrived(member, &ControlBlocks::Round::proposal);
  return proposal == nullptr ? nullptr : &proposal->proposal;
}

std::uint64_t SurvivorMessages::missed_from(int member) const noexcept {
  std::uint64_t engines = 0;
  for (int engine = 0; engine < box_.engines() && proposal(member) != nullptr; ++engine) {
    if (load_word(box_.inbox(member).probes[round_][engine]) != ControlBlocks::kIsThere)
      engines |= std::uint64_t{1} << engine;
  }
  return engines;
}

void SurvivorMessages::put_missed(std::uint64_t engines) noexcept {
  box_.put_everywhere(offsetof(PeerInbox, missed) + round_ * sizeof(std::uint64_t),
                      engines << kMissedShift | ControlBlocks::kIsThere);
}

std::optional<std::uint64_t> SurvivorMessages::missed_by(int member) const noexcept {
  const std::uint64_t word = load_word(box_.inbox(member).missed[round_]);
  if (word == 0) return {};
  return word >> kMissedShift;
}

/// Every member puts one decision: its own, or the one that it learnt of first.
void SurvivorMessages::put_decision() noexcept {
  has_decided_ = true;
  put(offsetof(ControlBlocks::Round, decision), own().decision);
  box_.push_out();
}

bool SurvivorMessages::others_have_team() const noexcept {
  for (int member = 0; member < box_.ranks(); ++member) {
    for (const std::uint64_t& complete : box_.inbox(member).complete) {
      if (load_word(complete) == ControlBlocks::kIsThere) return true;
    }
  }
  return false;
}

bool SurvivorMessages::is_left_out() const noexcept {
  if (others_have_team()) return true;
  for (int member = 0; member < box_.ranks(); ++member) {
    const ControlBlocks::Decision* const decision = arrived(member, &ControlBlocks::Round::decision);
    if (decision != nullptr && !decision->members.has(box_.rank())) return true;
  }
  return false;
}

void SurvivorMessages::count_only(const MemberSet& members) noexcept {
  for (int member = 0; member < box_.ranks(); ++member) {
    if (!members.has(member)) without_.add(member);
  }
}

const ControlBlocks::Decision* SurvivorMessages::decision(int lowest) noexcept {
  if (has_decided_) return &own().decision;
  const ControlBlocks::Decision* least = nullptr;
  for (int member = 0; member < box_.ranks(); ++member) {
    const ControlBlocks::Decision* const decision =
        counts(member) ? arrived(member, &ControlBlocks::Round::decision) : nullptr;
    if (decision == nullptr || decision->origin > static_cast<std::uint64_t>(lowest)) continue;
    if (least == nullptr || decision->origin < least->origin) least = decision;
  }
  if (least == nullptr) return nullptr;
  own().decision.members = least->members;
  own().decision.engines = least->engines;
  own().decision.origin = least->origin;
  put_decision();
  return &own().decision;
}

void SurvivorMessages::decide(const MemberSet& members) noexcept {
  if (has_decided_) return;
  own().decision.members = members;
  own().decision.origin = static_cast<std::uint64_t>(box_.rank());
  for (int member = 0; member < box_.ranks(); ++member) {
    if (members.has(member)) own().decision.engines |= missed_by(member).value_or(0);
  }
  put_decision();
}

void SurvivorMessages::put_closed() noexcept {
  box_.put_everywhere(offsetof(PeerInbox, closed) + round_ * sizeof(std::uint64_t), ControlBlocks::kIsThere);
  box_.push_out();
}

bool SurvivorMessages::has_closed(int member) const noexcept {
  return load_word(box_.inbox(member).closed[round_]) == ControlBlocks::kIsThere;
}

void SurvivorMessages::put_made() noexcept {
  has_made_ = true;
  put(offsetof(ControlBlocks::Round, made), own().made);
}

bool SurvivorMessages::has_made(int member) const noexcept {
  if (member == box_.rank()) return has_made_;
  const ControlBlocks::Ending* const made = arrived(member, &ControlBlocks::Round::made);
  return made != nullptr && made->failure.status == 0 && arrived(member, &ControlBlocks::Round::decision) != nullptr &&
         !decides_otherwise(member);
}

bool SurvivorMessages::decides_otherwise(int member) const noexcept {
  const ControlBlocks::Decision* const theirs = arrived(member, &ControlBlocks::Round::decision);
  return theirs != nullptr && theirs->members != own_decision().members;
}

void SurvivorMessages::put_complete() noexcept {
  box_.put_everywhere(offsetof(PeerInbox, complete) + round_ * sizeof(std::uint64_t), ControlBlocks::kIsThere);
  box_.push_out();
}

bool SurvivorMessages::is_complete() const noexcept {
  for (int member = 0; member < box_.ranks(); ++member) {
    if (!counts(member) || load_word(box_.inbox(member).complete[round_]) != ControlBlocks::kIsThere) continue;
    if (arrived(member, &ControlBlocks::Round::decision) != nullptr && !decides_otherwise(member)) return true;
  }
  return false;
}

void SurvivorMessages::leave(const RoundFailure& failure, int origin) noexcept {
  if (has_left_) return;
  has_left_ = true;
  ControlBlocks::Ending& ending = has_made_ ? own().left : own().made;
  ending.failure = failure;
  ending.origin = static_cast<std::uint64_t>(origin);
  put(has_made_ ? offsetof(ControlBlocks::Round, left) : offsetof(ControlBlocks::Round, made), ending);
}

bool SurvivorMessages::has_left(int member) const noexcept { return left_by(member, round_) != nullptr; }

const ControlBlocks::Ending* SurvivorMessages::ending() const noexcept {
  const ControlBlocks::Ending* lowest = nullptr;
  for (int member = 0; member < box_.ranks(); ++member) {
    const ControlBlocks::Ending* const ending = counts(member) ? left_by(member, round_) : nullptr;
    if (ending != nullptr && (lowest == nullptr || ending->origin < lowest->origin)) lowest = ending;
  }
  return lowest;
}

}  // namespace torii
