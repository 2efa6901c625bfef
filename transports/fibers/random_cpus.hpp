// SPDX-License-Identifier: Apache-2.0
// CPU numbers and hops of a simulation: anything that a machine or a sandbox may say, by a seed. Its ranks run on one
// thread, which sees all its stores.
#pragma once

#include <cstdint>
#include <random>

#include "runtime/base/platform.hpp"

namespace torii::fibers {

/// Draws from a generator of its own, so that a history in which nobody hops is the same whoever looks at numbers.
class RandomCpus : public Platform {
 public:
  explicit RandomCpus(std::uint64_t seed) : random_(seed) {}
  bool join_fences() noexcept override { return true; }
  bool fence_all() noexcept override { return true; }
  /// Any of a few, or none, from one moment to the next.
  int cpu() noexcept override { return static_cast<int>(random_() % 5) - 1; }
  /// Takes a while, and may be refused.
  Hop hop(const CpuSet&) noexcept override {
    constexpr std::uint64_t kNsMost = 4'000'000;
    sleep(static_cast<std::int64_t>(random_() % kNsMost));
    const std::uint64_t drawn = random_() % 16;
    return drawn == 0 ? Hop::impossible : drawn < 4 ? Hop::not_made : Hop::made;
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace torii::fibers
