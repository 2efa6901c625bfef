// SPDX-License-Identifier: Apache-2.0
// A hash of all calls that a rank has made on a team, or refused. Every signal of a call is salted with the hash. Ranks
// whose earlier calls differ never take each other's messages, so no call pairs with another rank's earlier or later
// call.
#pragma once

#include <cstdint>

namespace torii {

class CallHistory {
 public:
  /// Salts the signature of the next call. The salt is even, so an odd signature stays odd.
  std::uint32_t salt() const noexcept { return static_cast<std::uint32_t>(hash_ >> 32) & ~1U; }
  /// `signature` is the call's, which is odd. Multiplying by an odd number loses nothing, and the difference of two odd
  /// signatures is even: histories that differ in one call have unlike salts.
  void add(std::uint32_t signature) noexcept {
    hash_ = (hash_ ^ static_cast<std::uint64_t>(signature) << 32) * 0x9e3779b97f4a7c15ULL;
  }
  /// A persistent operation is prepared.
  void add_prepared(std::uint32_t signature) noexcept { add(signature ^ 0x80000000U); }
  void add_refused() noexcept { add(0xd1b54a33U); }

 private:
  std::uint64_t hash_ = 0;
};

}  // namespace torii
