// SPDX-License-Identifier: Apache-2.0
// Handles puts that have arrived in this rank's arena.
#pragma once

#include <cstddef>
#include <cstdint>

namespace torii::libfabric {

/// Thread-safe. The data comes from the network, so any value is handled.
class Arrivals {
 public:
  /// Maps one bit per line of the arena; its pages are taken on first touch. Throws Error{no_resource}.
  Arrivals(std::byte* arena, std::size_t arena_bytes);
  ~Arrivals();
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  /// Executes the notice in the completion data. Returns false and changes nothing for an action or a line that does
  /// not exist.
  bool take(std::uint64_t notice) noexcept;
  /// Clears the halves that have arrived for these bytes of the arena.
  void forget(std::uint64_t offset, std::size_t bytes) noexcept;

 private:
  /// True for the second of two halves.
  bool is_second_half(std::uint64_t line) noexcept;

  std::byte* arena_;
  std::uint64_t lines_;
  std::size_t halves_bytes_;
  std::uint64_t* halves_ = nullptr;  ///< a bit per line: one half has arrived
};

}  // namespace torii::libfabric
