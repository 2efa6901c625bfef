// SPDX-License-Identifier: Apache-2.0
// The words of rounds on one node: what is stored before, and read after.
#include "api/team/node_rounds.hpp"

namespace torii {
namespace {

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

}  // namespace

NodeRounds::State NodeRounds::newest() const noexcept {
  State newest;
  for (const std::atomic<std::uint64_t>& word : record_(0).rounds) {
    const State one = state_in(word.load(std::memory_order_relaxed));
    if (one.round > newest.round) newest = one;
  }
  return newest;
}

NodeRounds::State NodeRounds::state_of(std::uint64_t round) const noexcept {
  const State state = state_in(record_(0).rounds[place_of(round)].load(std::memory_order_seq_cst));
  return state.round == round ? state : State{.round = round};
}

bool NodeRounds::open_after(const State& last, const std::function<bool(int member)>& lives) noexcept {
  const State next = {.round = last.round + 1, .kind = Kind::open};
  const std::size_t place = place_of(next.round);
  std::atomic<std::uint64_t>& word = record_(0).rounds[place];
  std::uint64_t before = word.load(std::memory_order_relaxed);
  const std::uint64_t gone = state_in(before).round;
  if (gone >= next.round) return true;
  for (int member = 0; member < ranks_ && gone != 0; ++member) {
    if (record_(member).reads.load(std::memory_order_seq_cst) == gone && lives(member)) return false;
  }
  (void)word.compare_exchange_strong(before, word_of(next), std::memory_order_seq_cst);
  return true;
}

bool NodeRounds::join(std::uint64_t round) noexcept {
  record_(rank_).reads.store(round, std::memory_order_seq_cst);
  if (state_of(round).kind == Kind::open) return true;
  record_(rank_).reads.store(0, std::memory_order_relaxed);  // nothing was read
  return false;
}

void NodeRounds::offer(std::uint64_t round, const RoundOffer& own) noexcept {
  SurvivorsRecord& mine = record_(rank_);
  mine.offers[place_of(round)] = own;
  mine.offered[place_of(round)].store(round, std::memory_order_release);
}

bool NodeRounds::has_offered(int member, std::uint64_t round) const noexcept {
  return record_(member).offered[place_of(round)].load(std::memory_order_acquire) == round;
}

const RoundOffer& NodeRounds::offer_of(int member, std::uint64_t round) const noexcept {
  return record_(member).offers[place_of(round)];
}

void NodeRounds::change(const State& from, Kind to) noexcept {
  std::uint64_t before = word_of(from);
  const State after = {.round = from.round, .kind = to, .member = to == Kind::made ? from.member : rank_};
  (void)record_(0).rounds[place_of(from.round)].compare_exchange_strong(before, word_of(after),
                                                                        std::memory_order_seq_cst);
}

void NodeRounds::choose(const State& open, const MemberSet& members) noexcept {
  record_(rank_).choices[place_of(open.round)] = members;
  change(open, Kind::chosen);
}

const MemberSet& NodeRounds::chosen(const State& chosen_or_made) const noexcept {
  return record_(chosen_or_made.member).choices[place_of(chosen_or_made.round)];
}

void NodeRounds::tell_made(std::uint64_t round) noexcept {
  record_(rank_).made.store(round, std::memory_order_release);
}

bool NodeRounds::has_made(int member, std::uint64_t round) const noexcept {
  return record_(member).made.load(std::memory_order_acquire) == round;
}

void NodeRounds::finish(const State& chosen) noexcept { change(chosen, Kind::made); }

void NodeRounds::fail(const State& from, const RoundFailure& failure) noexcept {
  record_(rank_).failures[place_of(from.round)] = failure;
  change(from, Kind::failed);
}

const RoundFailure& NodeRounds::failure(const State& failed) const noexcept {
  return record_(failed.member).failures[place_of(failed.round)];
}

void NodeRounds::leave() noexcept { record_(rank_).reads.store(0, std::memory_order_release); }

}  // namespace torii
