// SPDX-License-Identifier: Apache-2.0
// The engines of one execution: whose turn it is, and what each has carried.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/fabric/transport.hpp"

namespace torii {

/// For one thread; bytes() may be called from others.
class EnginePicker {
 public:
  explicit EnginePicker(int engines) : engines_(static_cast<unsigned>(engines)) {}

  /// The next engine in turn.
  int next() noexcept {
    const auto engine = static_cast<int>(next_);
    if (++next_ == engines_) next_ = 0;
    return engine;
  }
  /// Counts what an engine has carried. Only the execution's thread adds, so a plain load and store are enough.
  void count(int engine, std::size_t bytes) noexcept {
    auto& counter = bytes_[static_cast<std::size_t>(engine)];
    counter.store(counter.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
  void rotate(std::size_t bytes) noexcept { count(next(), bytes); }
  std::uint64_t bytes(int engine) const noexcept {
    return bytes_[static_cast<std::size_t>(engine)].load(std::memory_order_relaxed);
  }

 private:
  unsigned engines_;
  unsigned next_ = 0;
  std::array<std::atomic<std::uint64_t>, kEnginesMax> bytes_{};
};

}  // namespace torii
