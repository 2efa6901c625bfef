// SPDX-License-Identifier: Apache-2.0
// Letters of the rounds about survivors: puts them, and passes on those of others.
#include "api/agreement/survivor_messages.hpp"

#include <cstring>

namespace torii {
namespace {

constexpr int kMissedShift = 8;  ///< of Inbox::missed

/// Where the payload of a letter begins.
constexpr std::size_t kPayload = kLineBytes;

}  // namespace

void check_offer(int member, std::uint64_t staging, std::size_t bytes, std::uint64_t arena_bytes) {
  if (bytes <= arena_bytes && staging <= arena_bytes - bytes && staging % kLineBytes == 0) return;
  throw Error(Status::transport,
              "rank " + std::to_string(member) + " offers " + std::to_string(bytes) + " bytes at offset " +
                  std::to_string(staging) + " of its arena, which has " + std::to_string(arena_bytes) +
                  " bytes, to the survivors' team",
              member);
}

const Letters::Ending* SurvivorMessages::left_by(int member, std::size_t round) const noexcept {
  for (Letters::Ending Letters::Round::*part : {&Letters::Round::made, &Letters::Round::left}) {
    const Letters::Round& own = box_.own().outbox.rounds[round];
    const Letters::Ending* const ending = member == box_.rank() ? &(own.*part) : box_.arrived(member, round, part);
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
  while (next_ < Letters::kRounds && has_ended(next_)) ++next_;
  if (next_ == Letters::kRounds) return false;
  round_ = next_++;
  has_decided_ = has_made_ = has_left_ = false;
  return true;
}

template <class Part>
void SurvivorMessages::put(std::size_t offset_in_round, const Part& part) noexcept {
  box_.put_copies({.offset = offsetof(Letters, rounds) + round_ * sizeof(Letters::Round) + offset_in_round,
                   .signal = Letters::kIsThere,
                   .payload = reinterpret_cast<const std::byte*>(&part) + kPayload,
                   .bytes = sizeof(Part) - kPayload});
}

void SurvivorMessages::put_offer(const RoundOffer& offered) noexcept {
  own().offer.offer = offered;
  put(offsetof(Letters::Round, offer), own().offer);
  const std::size_t first = offsetof(Inbox, probes) + round_ * sizeof(Inbox::probes[0]);
  for (int engine = 0; engine < box_.engines(); ++engine) {
    box_.put({.engine = engine,
              .offset = first + static_cast<std::size_t>(engine) * sizeof(std::uint64_t),
              .signal = Letters::kIsThere});
  }
}

const RoundOffer* SurvivorMessages::offer(int member) const noexcept {
  if (member == box_.rank()) return &box_.own().outbox.rounds[round_].offer.offer;
  const Letters::Offer* const offer = arrived(member, &Letters::Round::offer);
  return offer == nullptr ? nullptr : &offer->offer;
}

std::uint64_t SurvivorMessages::missed_from(int member) const noexcept {
  std::uint64_t engines = 0;
  for (int engine = 0; engine < box_.engines() && offer(member) != nullptr; ++engine) {
    if (load_word(box_.inbox(member).probes[round_][engine]) != Letters::kIsThere)
      engines |= std::uint64_t{1} << engine;
  }
  return engines;
}

void SurvivorMessages::put_missed(std::uint64_t engines) noexcept {
  box_.put_everywhere(offsetof(Inbox, missed) + round_ * sizeof(std::uint64_t),
                      engines << kMissedShift | Letters::kIsThere);
}

std::optional<std::uint64_t> SurvivorMessages::missed_by(int member) const noexcept {
  const std::uint64_t word = load_word(box_.inbox(member).missed[round_]);
  if (word == 0) return {};
  return word >> kMissedShift;
}

/// Every member puts one decision: its own, or the one that it learnt of first.
void SurvivorMessages::put_decision() noexcept {
  has_decided_ = true;
  put(offsetof(Letters::Round, decision), own().decision);
  box_.push_out();
}

bool SurvivorMessages::others_have_team() const noexcept {
  for (int member = 0; member < box_.ranks(); ++member) {
    for (const std::uint64_t& complete : box_.inbox(member).complete) {
      if (load_word(complete) == Letters::kIsThere) return true;
    }
  }
  return false;
}

bool SurvivorMessages::is_left_out() const noexcept {
  if (others_have_team()) return true;
  for (int member = 0; member < box_.ranks(); ++member) {
    const Letters::Decision* const decision = arrived(member, &Letters::Round::decision);
    if (decision != nullptr && !decision->members.has(box_.rank())) return true;
  }
  return false;
}

void SurvivorMessages::count_only(const MemberSet& members) noexcept {
  for (int member = 0; member < box_.ranks(); ++member) {
    if (!members.has(member)) without_.add(member);
  }
}

const Letters::Decision* SurvivorMessages::decision(int lowest) noexcept {
  if (has_decided_) return &own().decision;
  const Letters::Decision* least = nullptr;
  for (int member = 0; member < box_.ranks(); ++member) {
    const Letters::Decision* const decision = counts(member) ? arrived(member, &Letters::Round::decision) : nullptr;
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
  box_.put_everywhere(offsetof(Inbox, closed) + round_ * sizeof(std::uint64_t), Letters::kIsThere);
  box_.push_out();
}

bool SurvivorMessages::has_closed(int member) const noexcept {
  return load_word(box_.inbox(member).closed[round_]) == Letters::kIsThere;
}

void SurvivorMessages::put_made() noexcept {
  has_made_ = true;
  put(offsetof(Letters::Round, made), own().made);
}

bool SurvivorMessages::has_made(int member) const noexcept {
  if (member == box_.rank()) return has_made_;
  const Letters::Ending* const made = arrived(member, &Letters::Round::made);
  return made != nullptr && made->failure.status == 0 && arrived(member, &Letters::Round::decision) != nullptr &&
         !decides_otherwise(member);
}

bool SurvivorMessages::decides_otherwise(int member) const noexcept {
  const Letters::Decision* const theirs = arrived(member, &Letters::Round::decision);
  return theirs != nullptr && theirs->members != own_decision().members;
}

void SurvivorMessages::put_complete() noexcept {
  box_.put_everywhere(offsetof(Inbox, complete) + round_ * sizeof(std::uint64_t), Letters::kIsThere);
  box_.push_out();
}

bool SurvivorMessages::is_complete() const noexcept {
  for (int member = 0; member < box_.ranks(); ++member) {
    if (!counts(member) || load_word(box_.inbox(member).complete[round_]) != Letters::kIsThere) continue;
    if (arrived(member, &Letters::Round::decision) != nullptr && !decides_otherwise(member)) return true;
  }
  return false;
}

void SurvivorMessages::leave(const RoundFailure& failure, int origin) noexcept {
  if (has_left_) return;
  has_left_ = true;
  Letters::Ending& ending = has_made_ ? own().left : own().made;
  ending.failure = failure;
  ending.origin = static_cast<std::uint64_t>(origin);
  put(has_made_ ? offsetof(Letters::Round, left) : offsetof(Letters::Round, made), ending);
}

bool SurvivorMessages::has_left(int member) const noexcept { return left_by(member, round_) != nullptr; }

const Letters::Ending* SurvivorMessages::ending() const noexcept {
  const Letters::Ending* lowest = nullptr;
  for (int member = 0; member < box_.ranks(); ++member) {
    const Letters::Ending* const ending = counts(member) ? left_by(member, round_) : nullptr;
    if (ending != nullptr && (lowest == nullptr || ending->origin < lowest->origin)) lowest = ending;
  }
  return lowest;
}

}  // namespace torii
