// SPDX-License-Identifier: Apache-2.0
// Offers and decisions: puts them, and passes on those of others.
#include "api/team/survivor_messages.hpp"

#include <cstring>

#include "runtime/base/status.hpp"

namespace torii {
namespace {

constexpr int kMissedShift = 8;  ///< of Inbox::missed
/// The part of a decision that is put.
constexpr std::size_t kDecisionBytes = sizeof(Letters::Decision) - offsetof(Letters::Decision, members);

}  // namespace

void check_offer(int member, std::uint64_t staging, std::size_t bytes, std::uint64_t arena_bytes) {
  if (bytes <= arena_bytes && staging <= arena_bytes - bytes && staging % kLineBytes == 0) return;
  throw Error(Status::transport,
              "rank " + std::to_string(member) + " offers " + std::to_string(bytes) + " bytes at offset " +
                  std::to_string(staging) + " of its arena, which has " + std::to_string(arena_bytes) +
                  " bytes, to the survivors' team",
              member);
}

void SurvivorMessages::put_status(std::size_t offset, Letters::Offer& source, Status status,
                                  const char* text) noexcept {
  source.status = static_cast<std::int32_t>(status);
  std::memcpy(source.text, text, strnlen(text, Letters::Offer::kTextBytes - 1));
  box_.put_copies({.offset = offset,
                   .signal = Letters::kIsThere,
                   .payload = &source.digest,
                   .bytes = sizeof(Letters::Offer) - offsetof(Letters::Offer, digest)});
}

void SurvivorMessages::put_offer(std::uint64_t digest, std::uint64_t staging, Status status,
                                 const std::string& text) noexcept {
  box_.own().outbox.offer.digest = digest;
  box_.own().outbox.offer.staging = staging;
  put_status(offsetof(Letters, offer), box_.own().outbox.offer, status, text.c_str());
  for (int engine = 0; engine < box_.engines(); ++engine) {
    box_.put({.engine = engine,
              .offset = offsetof(Inbox, probes) + static_cast<std::size_t>(engine) * sizeof(std::uint64_t),
              .signal = Letters::kIsThere});
  }
}

void SurvivorMessages::put_made(Status status, const std::string& text) noexcept {
  put_status(offsetof(Letters, made), box_.own().outbox.made, status, text.c_str());
}

const Letters::Offer* SurvivorMessages::offer(int member) const noexcept {
  return box_.arrived(member, &Letters::offer);
}

/// A member that gave a reason may have died before it told all members. Those that know pass it on.
const Letters::Offer* SurvivorMessages::made(int member) noexcept {
  const Letters::Offer* made = box_.arrived(member, &Letters::made);
  for (int from = 0; from < box_.ranks() && made == nullptr; ++from) {
    const Letters::Offer* const passed = box_.arrived(from, &Letters::passed);
    if (passed != nullptr && passed->staging == static_cast<std::uint64_t>(member)) made = passed;
  }
  Letters::Offer& own = box_.own().outbox.passed;
  if (made != nullptr && made->status != 0 && own.status == 0) {
    own.staging = static_cast<std::uint64_t>(member);
    put_status(offsetof(Letters, passed), own, static_cast<Status>(made->status), made->text);
  }
  return made;
}

std::uint64_t SurvivorMessages::missed_from(int member) const noexcept {
  std::uint64_t engines = 0;
  for (int engine = 0; engine < box_.engines() && offer(member); ++engine) {
    if (load_word(box_.inbox(member).probes[engine]) != Letters::kIsThere) engines |= std::uint64_t{1} << engine;
  }
  return engines;
}

void SurvivorMessages::put_missed(std::uint64_t engines) noexcept {
  box_.put_everywhere(offsetof(Inbox, missed), engines << kMissedShift | Letters::kIsThere);
}

std::optional<std::uint64_t> SurvivorMessages::missed_by(int member) const noexcept {
  const std::uint64_t word = load_word(box_.inbox(member).missed);
  if (word == 0) return {};
  return word >> kMissedShift;
}

/// Every member puts one decision: its own, or the one that it learnt of first.
void SurvivorMessages::put_decision() noexcept {
  has_decided_ = true;
  const Letters::Decision& source = box_.own().outbox.decision;
  box_.put_copies({.offset = offsetof(Letters, decision),
                   .signal = Letters::kIsThere,
                   .payload = source.members,
                   .bytes = kDecisionBytes});
  box_.push_out();
}

const Letters::Decision* SurvivorMessages::decision() noexcept {
  for (int member = 0; member < box_.ranks(); ++member) {
    const Letters::Decision* const decision = box_.arrived(member, &Letters::decision);
    if (decision == nullptr) continue;
    if (!has_decided_) {
      std::memcpy(box_.own().outbox.decision.members, decision->members, kDecisionBytes);
      put_decision();
    }
    return decision;
  }
  return nullptr;
}

void SurvivorMessages::decide() noexcept {
  if (has_decided_) return;
  Letters::Decision& own = box_.own().outbox.decision;
  for (int member = 0; member < box_.ranks(); ++member) {
    const Letters::Offer* const offered = offer(member);
    if (offered == nullptr) continue;
    if (own.refusing == 0 && offered->status != 0) {
      own.refusing = static_cast<std::uint64_t>(member) + 1;
      own.status = offered->status;
      std::memcpy(own.text, offered->text, sizeof(own.text));
    }
    own.members[member / 64] |= std::uint64_t{1} << (member % 64);
    own.engines |= missed_by(member).value_or(0);
  }
  put_decision();
}

void SurvivorMessages::put_closed() noexcept {
  box_.put_everywhere(offsetof(Inbox, closed), Letters::kIsThere);
  box_.push_out();
}

bool SurvivorMessages::has_closed(int member) const noexcept {
  return load_word(box_.inbox(member).closed) == Letters::kIsThere;
}

}  // namespace torii
