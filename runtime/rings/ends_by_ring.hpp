// SPDX-License-Identifier: Apache-2.0
// The ends of a rank's rings, by peer and ring. A rank of a large team has rings to few others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace torii {

/// Ends stay where they are, in blocks, since memory for one of them, on lines of its own, would take half as much
/// again.
template <class End>
class EndsByRing {
 public:
  struct Found {
    End& end;
    bool is_new;
  };
  /// Makes an end that is not there.
  Found of(int peer, int ring) {
    const std::uint64_t key = static_cast<std::uint64_t>(peer) << 32 | static_cast<std::uint64_t>(ring);
    const auto found = numbers_.find(key);
    if (found != numbers_.end()) return {at(found->second), false};
    const std::size_t number = numbers_.size();
    if (number == blocks_.size() * kBlockEnds) blocks_.push_back(std::make_unique<Block>());
    numbers_.emplace(key, number);
    return {at(number), true};
  }

 private:
  static constexpr std::size_t kBlockEnds = 8;
  using Block = std::array<End, kBlockEnds>;

  End& at(std::size_t number) noexcept { return (*blocks_[number / kBlockEnds])[number % kBlockEnds]; }

  std::unordered_map<std::uint64_t, std::size_t> numbers_;  ///< in the order of their making
  std::vector<std::unique_ptr<Block>> blocks_;
};

}  // namespace torii
