// SPDX-License-Identifier: Apache-2.0
// The words of foundings: what is stored before, and read after (docs/memory_order.md, "Foundings").
#include "api/context/founding_board.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/base/status.hpp"

namespace torii {
namespace {

constexpr int kStateBits = 3;
constexpr int kVerdictBits = 8;

constexpr std::uint64_t word_of(std::uint64_t serial, FoundingState state) noexcept {
  return serial << kStateBits | static_cast<std::uint64_t>(state);
}
constexpr FoundingState state_in(std::uint64_t word) noexcept {
  return static_cast<FoundingState>(word & ((1U << kStateBits) - 1));
}
constexpr std::uint64_t serial_in(std::uint64_t word) noexcept { return word >> kStateBits; }

constexpr FoundingVerdict verdict_in(std::uint64_t word) noexcept {
  const auto verdict = static_cast<FoundingVerdict>(word & ((1U << kVerdictBits) - 1));
  return verdict <= FoundingVerdict::made ? verdict : FoundingVerdict::failed;
}

std::size_t slots_bytes(int places) noexcept {
  return round_up(static_cast<std::size_t>(places) * sizeof(FoundingEntry::Slot), kLineBytes);
}
std::size_t members_bytes(int places) noexcept {
  return round_up(static_cast<std::size_t>(places) * sizeof(int), kLineBytes);
}
std::size_t failures_bytes(int places) noexcept { return static_cast<std::size_t>(places) * sizeof(FoundingFailure); }

}  // namespace

static_assert(sizeof(FoundingEntry::Head) <= kLineBytes && sizeof(FoundingEntry::Slot) == 16);

std::size_t FoundingEntry::bytes(int places) noexcept {
  return round_up(kLineBytes + slots_bytes(places) + members_bytes(places) + kTextBytes + failures_bytes(places),
                  kLineBytes);
}

int* FoundingEntry::members() const noexcept {
  return reinterpret_cast<int*>(memory_ + kLineBytes + slots_bytes(places_));
}

char* FoundingEntry::text() const noexcept {
  return reinterpret_cast<char*>(memory_ + kLineBytes + slots_bytes(places_) + members_bytes(places_));
}

FoundingFailure& FoundingEntry::failure(int place) const noexcept {
  return reinterpret_cast<FoundingFailure*>(text() + kTextBytes)[place];
}

void FoundingSeat::tell(FoundingState state) noexcept {
  entry_.slot(place_).state.store(word_of(serial_, state), std::memory_order_release);
}

void FoundingSeat::tell_come(std::uint64_t offset) noexcept {
  entry_.slot(place_).offset = offset;
  tell(FoundingState::come);
}

bool FoundingSeat::has_told(int place, FoundingState state) const noexcept {
  const std::uint64_t word = entry_.slot(place).state.load(std::memory_order_acquire);
  return word >= word_of(serial_, state) && word < word_of(serial_, FoundingState::left);
}

std::string_view FoundingSeat::text() const noexcept {
  return {entry_.text(), std::min<std::size_t>(entry_.head().text_bytes, FoundingEntry::kTextBytes)};
}

std::span<const int> FoundingSeat::members() const noexcept {
  return {entry_.members(), std::min(entry_.head().count, static_cast<std::uint32_t>(entry_.places()))};
}

FoundingVerdict FoundingSeat::verdict() const noexcept {
  return verdict_in(entry_.head().verdict.load(std::memory_order_acquire));
}

void FoundingSeat::conclude() noexcept {
  auto open = static_cast<std::uint64_t>(FoundingVerdict::open);
  (void)entry_.head().verdict.compare_exchange_strong(open, static_cast<std::uint64_t>(FoundingVerdict::made),
                                                      std::memory_order_release, std::memory_order_relaxed);
}

bool FoundingSeat::fail(const FoundingFailure& failure) noexcept {
  std::memcpy(&entry_.failure(place_), &failure, sizeof(failure));
  auto open = static_cast<std::uint64_t>(FoundingVerdict::open);
  const std::uint64_t failed =
      static_cast<std::uint64_t>(place_) << kVerdictBits | static_cast<std::uint64_t>(FoundingVerdict::failed);
  return entry_.head().verdict.compare_exchange_strong(open, failed, std::memory_order_release,
                                                       std::memory_order_relaxed);
}

FoundingFailure FoundingSeat::failure() const noexcept {
  const std::uint64_t place = entry_.head().verdict.load(std::memory_order_relaxed) >> kVerdictBits;
  FoundingFailure failure = {};
  if (place < static_cast<std::uint64_t>(entry_.places())) {
    std::memcpy(&failure, &entry_.failure(static_cast<int>(place)), sizeof(failure));
  }
  failure.text[FoundingFailure::kTextBytes - 1] = 0;
  constexpr auto kLast = static_cast<std::int32_t>(Status::internal);
  if (failure.status > 0 && failure.status <= kLast && failure.text[0] != 0) return failure;
  return {kLast, -1, "the board on which the team is founded has words that no member writes"};
}

void FoundingSeat::excuse(int place, bool is_dead) noexcept {
  auto& state = entry_.slot(place).state;
  std::uint64_t word = state.load(std::memory_order_relaxed);
  if (serial_in(word) != serial_ || (!is_dead && state_in(word) != FoundingState::awaited)) return;
  (void)state.compare_exchange_strong(word, word_of(serial_, FoundingState::left), std::memory_order_relaxed);
}

int FoundingBoard::entries_for(int places) noexcept {
  constexpr std::size_t kBytes = std::size_t{1} << 20, kLeast = 16;
  return static_cast<int>(std::clamp<std::size_t>(kBytes / FoundingEntry::bytes(places), kLeast, kEntriesMost));
}

std::size_t FoundingBoard::bytes(int places, int entries) noexcept {
  return kLineBytes + static_cast<std::size_t>(entries) * FoundingEntry::bytes(places);
}

FoundingEntry FoundingBoard::entry(int number) const noexcept {
  return {memory_ + kLineBytes + static_cast<std::size_t>(number) * FoundingEntry::bytes(places_), places_};
}

/// Number and use are those of the slot's founding if the slot still has that word in enter(): the opener writes others
/// only after it has seen that this rank has left.
std::optional<FoundingBoard::Found> FoundingBoard::find(std::uint64_t number, int place) const noexcept {
  std::optional<Found> oldest;
  const auto used_here =
      static_cast<int>(std::min(used().load(std::memory_order_relaxed), static_cast<std::uint32_t>(entries_)));
  for (int at = 0; at < used_here; ++at) {
    const std::uint64_t word = entry(at).slot(place).state.load(std::memory_order_acquire);
    if (state_in(word) != FoundingState::awaited) continue;
    const FoundingEntry::Head& head = entry(at).head();
    if (head.number.load(std::memory_order_relaxed) != number) continue;
    if (head.use.load(std::memory_order_relaxed) != use_) continue;
    if (!oldest || word < oldest->word) oldest = Found{at, word};
  }
  return oldest;
}

std::optional<FoundingSeat> FoundingBoard::enter(std::uint64_t number, int place) noexcept {
  std::optional<Found> found = find(number, place);
  if (!found) return {};
  const std::uint64_t serial = serial_in(found->word);
  // Another thread of this rank may be quicker, and the opener may excuse it.
  if (!entry(found->entry)
           .slot(place)
           .state.compare_exchange_strong(found->word, word_of(serial, FoundingState::inside),
                                          std::memory_order_relaxed)) {
    return {};
  }
  return FoundingSeat(entry(found->entry), place, serial);
}

void FoundingOpener::begin_use(int place) noexcept {
  ++board_.use_;
  place_ = place;
}

bool FoundingOpener::is_at_rest() noexcept {
  const std::lock_guard lock(mutex_);
  int at = 0;
  while (at < used_ && is_free(at)) ++at;
  return at == used_;
}

/// A rank that has left has read all that it reads there.
bool FoundingOpener::is_free(int entry) const noexcept {
  for (int place = 0; place < board_.places_; ++place) {
    const std::uint64_t word = board_.entry(entry).slot(place).state.load(std::memory_order_acquire);
    if (state_in(word) != FoundingState::none && state_in(word) != FoundingState::left) return false;
  }
  return true;
}

FoundingSeat FoundingOpener::write(FoundingEntry entry, const FoundingTerms& terms) noexcept {
  FoundingEntry::Head& head = entry.head();
  head.number.store(terms.number, std::memory_order_relaxed);
  head.use.store(board_.use_, std::memory_order_relaxed);
  head.verdict.store(static_cast<std::uint64_t>(FoundingVerdict::open), std::memory_order_relaxed);
  head.digest = terms.digest;
  head.count = static_cast<std::uint32_t>(terms.members.size());
  head.text_bytes = static_cast<std::uint32_t>(std::min(terms.text.size(), FoundingEntry::kTextBytes));
  std::memcpy(entry.members(), terms.members.data(), terms.members.size_bytes());
  std::memcpy(entry.text(), terms.text.data(), head.text_bytes);
  return {entry, place_, ++serial_};
}

std::optional<FoundingSeat> FoundingOpener::open(const FoundingTerms& terms, std::uint64_t offset,
                                                 const FoundingFailure* refusal, std::int64_t late_ns) noexcept {
  const std::lock_guard lock(mutex_);
  int free = 0;
  while (free < used_ && !is_free(free)) ++free;
  if (free == board_.entries_) return {};
  late_ns_[static_cast<std::size_t>(free)] = late_ns;
  const FoundingEntry entry = board_.entry(free);
  FoundingSeat seat = write(entry, terms);
  if (refusal != nullptr) (void)seat.fail(*refusal);
  FoundingEntry::Slot& own = entry.slot(place_);
  own.offset = offset;
  own.state.store(word_of(serial_, FoundingState::come), std::memory_order_relaxed);  // behind which are the others'
  for (const int rank : terms.members) {
    const int place = terms.rank_places[static_cast<std::size_t>(rank)];
    if (place == place_) continue;
    entry.slot(place).state.store(word_of(serial_, FoundingState::awaited), std::memory_order_release);
  }
  if (free == used_) board_.used().store(static_cast<std::uint32_t>(++used_), std::memory_order_relaxed);
  return seat;
}

void FoundingOpener::make_room(std::int64_t now_ns, bool (*has_ended)(void* data, int place), void* data) noexcept {
  const std::lock_guard lock(mutex_);
  for (int at = 0; at < used_; ++at) {
    const FoundingEntry entry = board_.entry(at);
    const FoundingVerdict verdict = verdict_in(entry.head().verdict.load(std::memory_order_relaxed));
    const bool is_late = verdict == FoundingVerdict::failed && now_ns >= late_ns_[static_cast<std::size_t>(at)];
    for (int place = 0; place < board_.places_; ++place) {
      const std::uint64_t word = entry.slot(place).state.load(std::memory_order_relaxed);
      const FoundingState state = state_in(word);
      if (place == place_ || state == FoundingState::none || state == FoundingState::left) continue;
      const bool is_dead = has_ended(data, place);
      if (is_dead || is_late) FoundingSeat(entry, place_, serial_in(word)).excuse(place, is_dead);
    }
  }
}

}  // namespace torii
