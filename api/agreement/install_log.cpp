// SPDX-License-Identifier: Apache-2.0
// Words of installations, and their comparison.
#include "api/agreement/install_log.hpp"

namespace torii {

std::uint64_t InstallLog::add(std::uint64_t fingerprint) noexcept {
  constexpr std::uint64_t kNumberMask = (std::uint64_t{1} << kNumberBits) - 1;
  std::uint64_t hash = (word(number_) ^ fingerprint) * 0x9e3779b97f4a7c15ULL;
  hash = (hash ^ (hash >> 32)) * 0xbf58476d1ce4e5b9ULL;
  ++number_;
  words_[number_ % kWords] = (hash & ~kNumberMask) | (number_ & kNumberMask);
  return number_;
}

InstallLog::Verdict InstallLog::compare(std::uint64_t peers_word, std::uint64_t number) const noexcept {
  // A word is overwritten here only after all members agreed on it.
  if (number + kWords <= number_) return Verdict::agrees;
  if (peers_word == word(number)) return Verdict::agrees;
  if (peers_word == 0) return Verdict::not_yet;
  // Numbers in one place are kWords apart, so their difference tells which is later even when they wrap.
  const auto ahead =
      static_cast<std::int16_t>(static_cast<std::uint16_t>(peers_word) - static_cast<std::uint16_t>(number));
  static_assert(kNumberBits == 16);
  if (ahead < 0) return Verdict::not_yet;
  // The peer overwrote its word, so it had seen all members agree.
  return ahead > 0 ? Verdict::agrees : Verdict::differs;
}

}  // namespace torii
