// SPDX-License-Identifier: Apache-2.0
// The words of rounds on one node: what is stored before, and read after.
#include "api/agreement/node_rounds.hpp"

#include <cstddef>
#include <cstring>

namespace torii {
namespace {

using Word = SurvivorsRecord::Word;

constexpr int kRoundShift = 32;
constexpr int kKindShift = 16;

std::uint64_t word_of(const NodeRounds::State& state) noexcept {
  return state.round << kRoundShift | static_cast<std::uint64_t>(state.kind) << kKindShift |
         static_cast<std::uint64_t>(state.member);
}

NodeRounds::State state_in(std::uint64_t word) noexcept {
  constexpr std::uint64_t kLow = 0xffff;
  return {word >> kRoundShift, static_cast<NodeRounds::Kind>(word >> kKindShift & kLow), static_cast<int>(word & kLow)};
}

std::size_t place_of(std::uint64_t round) noexcept { return round % SurvivorsRecord::kPlaces; }

/// Stores bytes from `first` up to `end`, or more up to a whole word. A word that stays as it is is not stored again.
template <class Part>
void put(Word* words, const Part& part, std::size_t first, std::size_t end) noexcept {
  for (std::size_t at = first; at < end; at += sizeof(Word)) {
    std::uint64_t value = 0;
    std::memcpy(&value, reinterpret_cast<const std::byte*>(&part) + at, sizeof(value));
    Word& word = words[at / sizeof(Word)];
    if (word.load(std::memory_order_relaxed) != value) word.store(value, std::memory_order_release);
  }
}

enum class Ends : std::uint8_t { there, with_text };

/// Loads bytes from `first` up to `end`, or to the end of the text that they are.
template <class Part>
void get(const Word* words, Part& part, std::size_t first, std::size_t end, Ends ends = Ends::there) noexcept {
  for (std::size_t at = first; at < end; at += sizeof(Word)) {
    const std::uint64_t value = words[at / sizeof(Word)].load(std::memory_order_acquire);
    std::memcpy(reinterpret_cast<std::byte*>(&part) + at, &value, sizeof(value));
    if (ends == Ends::with_text && std::memchr(&value, 0, sizeof(value)) != nullptr) return;
  }
}

/// Where the text ends that a part has.
template <class Part>
std::size_t text_end(const Part& part) noexcept {
  return offsetof(Part, text) + std::strlen(part.text) + 1;
}

}  // namespace

static_assert(sizeof(SurvivorProposal) % sizeof(Word) == 0 && sizeof(RoundFailure) % sizeof(Word) == 0);
static_assert(offsetof(SurvivorProposal, text) % sizeof(Word) == 0 && offsetof(RoundFailure, text) % sizeof(Word) == 0);

/// The bytes of a set's words, as far as this team has members.
std::size_t NodeRounds::set_bytes() const noexcept {
  constexpr int kBits = 64;
  return static_cast<std::size_t>((ranks_ + kBits - 1) / kBits) * sizeof(Word);
}

NodeRounds::State NodeRounds::newest() const noexcept {
  State newest;
  for (const Word& word : record_(0).rounds) {
    const State one = state_in(word.load(std::memory_order_relaxed));
    if (one.round > newest.round) newest = one;
  }
  return newest;
}

NodeRounds::State NodeRounds::state_of(std::uint64_t round) const noexcept {
  const State state = state_in(record_(0).rounds[place_of(round)].load(std::memory_order_acquire));
  return state.round == round ? state : State{.round = round};
}

bool NodeRounds::is_still(const State& state) const noexcept {
  return record_(0).rounds[place_of(state.round)].load(std::memory_order_relaxed) == word_of(state);
}

void NodeRounds::open_after(const State& last) noexcept {
  const State next = {.round = last.round + 1, .kind = Kind::open};
  Word& word = record_(0).rounds[place_of(next.round)];
  std::uint64_t before = word.load(std::memory_order_relaxed);
  if (state_in(before).round >= next.round) return;
  (void)word.compare_exchange_strong(before, word_of(next), std::memory_order_relaxed);
}

void NodeRounds::proposal(std::uint64_t round, const SurvivorProposal& own) noexcept {
  SurvivorsRecord& mine = record_(rank_);
  const std::size_t place = place_of(round);
  put(mine.proposals[place], own, 0, offsetof(SurvivorProposal, without) + set_bytes());
  if (own.status != 0) put(mine.proposals[place], own, offsetof(SurvivorProposal, text), text_end(own));
  mine.proposed[place].store(round, std::memory_order_release);
}

bool NodeRounds::has_proposed(int member, std::uint64_t round) const noexcept {
  return record_(member).proposed[place_of(round)].load(std::memory_order_acquire) == round;
}

SurvivorProposal NodeRounds::proposal_of(int member, std::uint64_t round) const noexcept {
  const Word* const words = record_(member).proposals[place_of(round)];
  SurvivorProposal proposal = {};
  get(words, proposal, 0, offsetof(SurvivorProposal, without) + set_bytes());
  if (proposal.status != 0) get(words, proposal, offsetof(SurvivorProposal, text), sizeof(proposal), Ends::with_text);
  return proposal;
}

void NodeRounds::change(const State& from, Kind to) noexcept {
  std::uint64_t before = word_of(from);
  const State after = {.round = from.round, .kind = to, .member = to == Kind::made ? from.member : rank_};
  (void)record_(0).rounds[place_of(from.round)].compare_exchange_strong(before, word_of(after),
                                                                        std::memory_order_release);
}

void NodeRounds::choose(const State& open, const MemberSet& members) noexcept {
  put(record_(rank_).choices[place_of(open.round)], members, 0, set_bytes());
  change(open, Kind::chosen);
}

std::optional<MemberSet> NodeRounds::chosen(const State& chosen_or_made) const noexcept {
  MemberSet members = {};
  get(record_(chosen_or_made.member).choices[place_of(chosen_or_made.round)], members, 0, set_bytes());
  return is_still(chosen_or_made) ? std::optional(members) : std::nullopt;
}

void NodeRounds::tell_made(std::uint64_t round) noexcept {
  record_(rank_).made.store(round, std::memory_order_release);
}

bool NodeRounds::has_made(int member, std::uint64_t round) const noexcept {
  return record_(member).made.load(std::memory_order_acquire) == round;
}

void NodeRounds::finish(const State& chosen) noexcept { change(chosen, Kind::made); }

void NodeRounds::fail(const State& from, const RoundFailure& failure) noexcept {
  Word* const words = record_(rank_).failures[place_of(from.round)];
  put(words, failure, 0, offsetof(RoundFailure, absent) + set_bytes());
  put(words, failure, offsetof(RoundFailure, text), text_end(failure));
  change(from, Kind::failed);
}

std::optional<RoundFailure> NodeRounds::failure(const State& failed) const noexcept {
  const Word* const words = record_(failed.member).failures[place_of(failed.round)];
  RoundFailure failure = {};
  get(words, failure, 0, offsetof(RoundFailure, absent) + set_bytes());
  get(words, failure, offsetof(RoundFailure, text), sizeof(failure), Ends::with_text);
  return is_still(failed) ? std::optional(failure) : std::nullopt;
}

}  // namespace torii
