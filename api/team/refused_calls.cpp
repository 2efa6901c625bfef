// SPDX-License-Identifier: Apache-2.0
// Compares what the members of a team have refused.
#include "api/team/refused_calls.hpp"

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

std::optional<RefusalNotice> read_notice(const RefusalNotice& place) noexcept {
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
  ++number_;
  RefusalNotice& notice = own_[number_ % kNotices];
  notice = {};
  notice.number = number_;
  notice.sequence = sequence;
  reason.copy(notice.text.data(), RefusalNotice::kTextBytes - 1);
  notice.check = check_of(std::bit_cast<Words>(notice));
  return notice;
}

bool RefusedCalls::has_refused(std::uint64_t sequence) const noexcept {
  const auto is_it = [=](const RefusalNotice& own) { return own.number != 0 && own.sequence == sequence; };
  return std::ranges::any_of(own_, is_it);
}

std::optional<RefusalNotice> RefusedCalls::refused_by_peer_alone(std::span<const RefusalNotice> peer,
                                                                 std::uint64_t own_sequence) const noexcept {
  // Older notices of this rank are overwritten: it may have refused any call before its oldest notice.
  std::uint64_t known_from = 0;
  if (number_ > kNotices) known_from = own_[(number_ + 1) % kNotices].sequence;
  for (const RefusalNotice& place : peer) {
    const std::optional<RefusalNotice> notice = read_notice(place);
    if (!notice || notice->sequence > own_sequence || notice->sequence < known_from) continue;
    if (!has_refused(notice->sequence)) return notice;
  }
  return {};
}

/// False also where the peer may have refused the call so long ago that its notice is gone, or is being written.
bool RefusedCalls::is_missing_in(std::span<const RefusalNotice> peer, const RefusalNotice& own) noexcept {
  for (const RefusalNotice& place : peer) {
    const std::optional<RefusalNotice> notice = read_notice(place);
    if (notice ? notice->sequence >= own.sequence : !is_blank(place)) return false;
  }
  return true;
}

}  // namespace torii
