// SPDX-License-Identifier: Apache-2.0
// Where scenarios have their words, slots, landings and sources in an arena, and what payloads hold.
#pragma once

#include <cstddef>
#include <cstdint>
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

inline std::byte content(std::uint64_t key, std::size_t at) {
  std::uint64_t x = key + (at / 8 + 1) * 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ULL;
  return static_cast<std::byte>(x >> (at % 8 * 8));
}

inline void fill(std::byte* to, std::size_t bytes, std::uint64_t key) {
  for (std::size_t i = 0; i < bytes; ++i) to[i] = content(key, i);
}

inline void check(const std::byte* at, std::size_t bytes, std::uint64_t key, const std::string& what) {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (at[i] == content(key, i)) continue;
    throw std::runtime_error(what + ": byte " + std::to_string(i) + " of " + std::to_string(bytes) + " is wrong");
  }
}

}  // namespace torii::tests
