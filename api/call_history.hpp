// SPDX-License-Identifier: Apache-2.0
// A hash of all calls that a rank has made on a team, or refused. Every signal of a call is salted with it: ranks whose
// earlier calls differ never take each other's messages, so no call pairs with another rank's earlier or later one.
#pragma once

#include <cstdint>

namespace torii {

class CallHistory {
 public:
  /// Of the next call; even, so that an odd signature stays odd.
  std::uint32_t salt() const noexcept { return static_cast<std::uint32_t>(hash_ >> 32) & ~1U; }
  /// `kind` has the call's signature, which is odd, in its upper half (pack_kind()). Multiplying by an odd number loses
  /// nothing, and the difference of two odd signatures is even: histories that differ in one call have unlike salts.
  void add(std::uint64_t kind) noexcept { hash_ = (hash_ ^ kind) * 0x9e3779b97f4a7c15ULL; }
  void add_refused() noexcept { add(std::uint64_t{0xd1b54a33} << 32); }

 private:
  std::uint64_t hash_ = 0;
};

}  // namespace torii
