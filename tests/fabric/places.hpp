// SPDX-License-Identifier: Apache-2.0
// Where scenarios have their words, slots, landings and sources in an arena, and what payloads hold.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>

namespace torii::tests {

// Where things stand in every arena, behind the words with which a Stage meets. A rank writes into the parts of a peer
// that carry its own number.
inline constexpr std::uint64_t kCredits = 4096;                      // kCreditsOfRank per rank
inline constexpr std::uint64_t kCreditsOfRank = 1024;                // a word per slot
inline constexpr std::uint64_t kSlots = std::uint64_t{1} << 20;      // kOfRank per rank: a line, then payload
inline constexpr std::uint64_t kLandings = std::uint64_t{11} << 20;  // kOfRank per rank
inline constexpr std::uint64_t kSources = std::uint64_t{21} << 20;   // of the own rank
inline constexpr std::uint64_t kOfRank = std::uint64_t{2} << 20;

inline constexpr std::uint64_t kGuard = 64;  // bytes behind a payload that nobody may touch

inline std::uint64_t of_rank(std::uint64_t base, int rank) { return base + kOfRank * static_cast<std::uint64_t>(rank); }
inline std::uint64_t credit_offset(int rank, std::uint64_t slot) {
  return kCredits + kCreditsOfRank * static_cast<std::uint64_t>(rank) + slot * sizeof(std::uint64_t);
}

/// Bytes 8 * word to 8 * word + 7 of what `key` stands for.
inline std::uint64_t content(std::uint64_t key, std::size_t word) {
  std::uint64_t x = key + (word + 1) * 0x9e3779b97f4a7c15ULL;
  return (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ULL;
}

/// Calls use(first, block, bytes) for blocks of content, one after the other. A sanitizer watches whole blocks in a
/// fraction of the time that it takes for each byte.
template <class Use>
void for_each_block(std::size_t bytes, std::uint64_t key, Use&& use) {
  std::uint64_t block[512];
  for (std::size_t first = 0; first < bytes; first += sizeof(block)) {
    for (std::size_t i = 0; i < std::size(block); ++i) block[i] = content(key, first / 8 + i);
    use(first, reinterpret_cast<const std::byte*>(block), std::min(sizeof(block), bytes - first));
  }
}

inline void fill(std::byte* to, std::size_t bytes, std::uint64_t key) {
  for_each_block(bytes, key, [&](std::size_t first, const std::byte* block, std::size_t now) {
    std::memcpy(to + first, block, now);
  });
}

inline void check(const std::byte* at, std::size_t bytes, std::uint64_t key, const std::string& what) {
  for_each_block(bytes, key, [&](std::size_t first, const std::byte* block, std::size_t now) {
    if (std::memcmp(at + first, block, now) == 0) return;
    std::size_t i = 0;
    while (at[first + i] == block[i]) ++i;
    throw std::runtime_error(what + ": byte " + std::to_string(first + i) + " of " + std::to_string(bytes) +
                             " is wrong");
  });
}

}  // namespace torii::tests
