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

std::uint64_t check_of(const Words& words) noexcept {
  // No sum of a notice of which only the number has come is 0, as the sum in blank memory is.
  std::uint64_t sum = 0x9e3779b97f4a7c15ULL;
  for (std::size_t i = 0; i + 1 < kWords; ++i) sum = (sum ^ words[i] ^ (sum >> 29)) * 0xbf58476d1ce4e5b9ULL;
  return sum;
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

/// The first call from `sequence` on that is in no run which this rank knows of.
std::uint64_t RefusedCalls::first_made_from(std::uint64_t sequence) const noexcept {
  const auto contains = [&](const RefusalNotice& own) {
    return own.number != 0 && own.first <= sequence && sequence <= own.last;
  };
  for (;;) {
    const auto run = std::ranges::find_if(own_, contains);
    if (run == own_.end()) return sequence;
    sequence = run->last + 1;
  }
}

std::optional<RefusedCall> RefusedCalls::refused_by_peer_alone(std::span<const RefusalNotice> peer,
                                                               std::uint64_t own_sequence) const noexcept {
  // Older notices of this rank are overwritten: it may have refused any call before its oldest notice.
  std::uint64_t known_from = 0;
  if (number_ > kNotices) known_from = own_[(number_ + 1) % kNotices].first;
  std::optional<RefusedCall> earliest;
  for (const RefusalNotice& place : peer) {
    const std::optional<RefusalNotice> notice = read_notice(place);
    if (!notice) continue;
    const std::uint64_t made = first_made_from(std::max(notice->first, known_from));
    if (made > std::min(notice->last, own_sequence)) continue;
    if (!earliest || made < earliest->sequence) earliest = {made, *notice};
  }
  return earliest;
}

/// Nothing also where the peer may have refused the call so long ago that its notice is gone, or is being written.
std::optional<RefusedCall> RefusedCalls::missing_in(std::span<const RefusalNotice> peer,
                                                    const RefusalNotice& own) noexcept {
  std::uint64_t first = own.first;
  for (const RefusalNotice& place : peer) {
    const std::optional<RefusalNotice> notice = read_notice(place);
    if (notice ? notice->last >= own.last : !is_blank(place)) return {};
    if (notice) first = std::max(first, notice->last + 1);
  }
  return RefusedCall{first, own};
}

}  // namespace torii
