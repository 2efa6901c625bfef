// SPDX-License-Identifier: Apache-2.0
// Compares what the members of a team have refused.
#include "api/agreement/refused_calls.hpp"

#include <algorithm>
#include <atomic>
#include <bit>

namespace torii {
namespace {

constexpr std::size_t kWords = sizeof(RefusalNotice) / sizeof(std::uint64_t);
using Words = std::array<std::uint64_t, kWords>;

bool is_blank(const RefusalNotice& place) noexcept {
  return std::atomic_ref(const_cast<std::uint64_t&>(place.number)).load(std::memory_order_acquire) == 0;
}

/// A peer's notices, as many as can be read now.
struct SeenNotices {
  std::array<RefusalNotice, kNoticePlacesMost> list{};
  std::size_t count = 0;
  bool are_whole = true;  ///< none is being written
};

std::uint64_t check_of(const Words& words) noexcept {
  // No sum of a notice of which only the number has come is 0, as the sum in blank memory is.
  std::uint64_t sum = 0x9e3779b97f4a7c15ULL;
  for (std::size_t i = 0; i + 1 < kWords; ++i) sum = (sum ^ words[i] ^ (sum >> 29)) * 0xbf58476d1ce4e5b9ULL;
  return sum;
}

SeenNotices see(std::span<const RefusalNotice> places) noexcept {
  SeenNotices seen;
  for (const RefusalNotice& place : places) {
    if (const std::optional<RefusalNotice> notice = read_notice(place)) {
      seen.list[seen.count++] = *notice;
    } else if (!is_blank(place)) {
      seen.are_whole = false;
    }
  }
  return seen;
}

/// A rank that has these notices may have refused any call before this one: run n + kNotices overwrites run n. A run
/// that was read before it was overwritten says nothing of those after it, which may be overwritten too.
std::uint64_t known_from(std::span<const RefusalNotice> notices) noexcept {
  std::uint64_t latest = 0;
  for (const RefusalNotice& notice : notices) latest = std::max(latest, notice.number);
  if (latest <= kNotices) return 0;
  std::uint64_t first = UINT64_MAX;
  for (const RefusalNotice& notice : notices) {
    if (notice.number + kNotices > latest) first = std::min(first, notice.first);
  }
  return first;
}

/// The first call from `sequence` on that is in none of the runs.
std::uint64_t first_outside(std::span<const RefusalNotice> runs, std::uint64_t sequence) noexcept {
  const auto contains = [&](const RefusalNotice& run) {
    return run.number != 0 && run.first <= sequence && sequence <= run.last;
  };
  for (;;) {
    const auto run = std::ranges::find_if(runs, contains);
    if (run == runs.end()) return sequence;
    sequence = run->last + 1;
  }
}

/// The earliest call up to `last` that is in one of the runs `refused`, but that a rank with the runs `others` made.
std::optional<RefusedCall> earliest_alone(std::span<const RefusalNotice> refused, std::span<const RefusalNotice> others,
                                          std::uint64_t last) noexcept {
  const std::uint64_t from = known_from(others);
  std::optional<RefusedCall> earliest;
  for (const RefusalNotice& run : refused) {
    if (run.number == 0) continue;
    const std::uint64_t made = first_outside(others, std::max(run.first, from));
    if (made > std::min(run.last, last)) continue;
    if (!earliest || made < earliest->sequence) earliest = {made, run};
  }
  return earliest;
}

}  // namespace

/// Words are stored one by one, since a peer may read the notice meanwhile. The release order of the last one makes all
/// of them known to who finds the sum right.
void write_notice(RefusalNotice& place, const RefusalNotice& notice) noexcept {
  const auto words = std::bit_cast<Words>(notice);
  auto* const to = reinterpret_cast<std::uint64_t*>(&place);
  for (std::size_t i = 0; i < kWords; ++i) std::atomic_ref(to[i]).store(words[i], std::memory_order_release);
}

/// Most places are blank, which one load tells. A notice of which the number has not come is not complete.
std::optional<RefusalNotice> read_notice(const RefusalNotice& place) noexcept {
  if (is_blank(place)) return {};
  auto* const from = reinterpret_cast<std::uint64_t*>(const_cast<RefusalNotice*>(&place));
  Words words;
  for (std::size_t i = kWords; i-- > 0;) words[i] = std::atomic_ref(from[i]).load(std::memory_order_acquire);
  const auto notice = std::bit_cast<RefusalNotice>(words);
  if (notice.number == 0 || notice.check != check_of(words)) return {};
  return notice;
}

std::optional<RefusalNotice> last_notice(std::span<const RefusalNotice> notices) noexcept {
  std::optional<RefusalNotice> last;
  for (const RefusalNotice& place : notices) {
    const std::optional<RefusalNotice> notice = read_notice(place);
    if (notice && (!last || notice->number > last->number)) last = notice;
  }
  return last;
}

const RefusalNotice& RefusedCalls::add(std::uint64_t sequence, std::string_view reason) noexcept {
  const std::string_view told = reason.substr(0, RefusalNotice::kTextBytes - 1);
  const bool is_next = number_ != 0 && latest().last + 1 == sequence;
  const bool goes_on = is_next && (in_a_row_ == kRunsInARow || told == latest().text.data());
  if (!goes_on) {
    in_a_row_ = is_next ? in_a_row_ + 1 : 1;
    RefusalNotice& fresh = own_[++number_ % kNotices];
    fresh = {};
    fresh.number = number_;
    fresh.first = sequence;
    told.copy(fresh.text.data(), told.size());
  }
  RefusalNotice& notice = own_[number_ % kNotices];
  notice.last = sequence;
  notice.check = check_of(std::bit_cast<Words>(notice));
  return notice;
}

std::optional<RefusedCall> RefusedCalls::refused_by_peer_alone(std::span<const RefusalNotice> peer,
                                                               std::uint64_t own_sequence) const noexcept {
  const SeenNotices theirs = see(peer);
  return earliest_alone({theirs.list.data(), theirs.count}, own_, own_sequence);
}

/// Nothing while the peer writes a notice: the one that was there may be of a call that is looked at.
std::optional<RefusedCall> RefusedCalls::refused_here_alone(std::span<const RefusalNotice> peer,
                                                            std::uint64_t peer_settled) const noexcept {
  if (is_empty() || peer_settled == 0) return {};
  const SeenNotices theirs = see(peer);
  if (!theirs.are_whole) return {};
  return earliest_alone(own_, {theirs.list.data(), theirs.count}, peer_settled);
}

}  // namespace torii
