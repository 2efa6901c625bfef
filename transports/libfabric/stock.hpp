// SPDX-License-Identifier: Apache-2.0
// A number of operations or bytes that the peers of an engine share, without silent peers starving the others.
#pragma once

#include <cstddef>

namespace torii::libfabric {

/// Each peer may always hold its floor, whatever the others hold. Beyond its floor a peer may hold as much of the
/// shared part as it leaves free. So one silent peer keeps half of that part, two keep three quarters, and the other
/// peers keep their floors. The caller stores how much each peer holds, initially 0.
class Stock {
 public:
  Stock() noexcept = default;
  /// The caller has `shared`, and `floor` for each peer.
  Stock(std::size_t shared, std::size_t floor) noexcept : shared_(shared), free_(shared), floor_(floor) {}

  bool may_take(std::size_t held, std::size_t amount) const noexcept { return beyond(held + amount) <= free_; }
  /// Whether a peer may take so much when nobody holds anything.
  bool can_hold(std::size_t amount) const noexcept { return beyond(amount) <= shared_; }
  void take(std::size_t& held, std::size_t amount) noexcept {
    free_ -= beyond(held + amount) - beyond(held);
    held += amount;
  }
  void give_back(std::size_t& held, std::size_t amount) noexcept {
    free_ += beyond(held) - beyond(held - amount);
    held -= amount;
  }

 private:
  std::size_t beyond(std::size_t held) const noexcept { return held > floor_ ? held - floor_ : 0; }

  std::size_t shared_ = 0;
  std::size_t free_ = 0;  ///< of the shared part
  std::size_t floor_ = 0;
};

}  // namespace torii::libfabric
