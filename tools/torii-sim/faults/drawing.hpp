// SPDX-License-Identifier: Apache-2.0
// What the files that draw histories share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>

#include "tools/torii-sim/faults/history.hpp"
#include "transports/fibers/fibers.hpp"

namespace torii::faults {

/// Numbers by a seed.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  std::mt19937_64& random() noexcept { return random_; }
  bool one_in(std::uint64_t n) { return random_() % n == 0; }
  /// From 0 to below - 1.
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  int below(int limit) { return static_cast<int>(random_() % static_cast<std::uint64_t>(limit)); }
  fibers::Time between(fibers::Time least, fibers::Time most) {
    return least + static_cast<fibers::Time>(below(static_cast<std::uint64_t>(most - least + 1)));
  }
  /// Up to 2^bits, every order of magnitude alike.
  std::uint64_t of_any_size(int bits) { return 1 + (random_() & ((std::uint64_t{2} << below(bits)) - 1)); }
  template <class Value, std::size_t count>
  Value one_of(const std::array<Value, count>& values) {
    return values[below(count)];
  }

 private:
  std::mt19937_64 random_;
};

/// One call on one of the history's teams, without deviations.
Step draw_step(const History& history, Draw& draw);
/// Gives about half of the histories standing rings, and makes some of them histories of streaks. Its numbers are a
/// stream of their own, so all that is drawn before stays as it is for the seed.
void add_rings(History& history);

}  // namespace torii::faults
