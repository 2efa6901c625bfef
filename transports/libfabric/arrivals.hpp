// SPDX-License-Identifier: Apache-2.0
// What this rank does when a put of a peer has arrived in its arena.
#pragma once

#include <cstddef>
#include <cstdint>

namespace torii::libfabric {

/// Thread-safe. The data comes from the network, so any value of it must be survived.
class Arrivals {
 public:
  /// `counts_halves`: peers may put payload and signal separately; a bit per line is mapped, and its pages are taken on
  /// first touch. Throws Error{no_resource}.
  Arrivals(std::byte* arena, std::size_t arena_bytes, bool counts_halves);
  ~Arrivals();
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  /// Does what the completion data says. False, and nothing changes, for a deed or a line that does not exist.
  bool take(std::uint64_t notice) noexcept;
  /// Forgets the halves that have arrived for these bytes of the arena.
  void forget(std::uint64_t offset, std::size_t bytes) noexcept;

 private:
  /// True for the second of two halves.
  bool is_second_half(std::uint64_t line) noexcept;

  std::byte* arena_;
  std::uint64_t lines_;
  std::size_t halves_bytes_ = 0;
  std::uint64_t* halves_ = nullptr;  ///< a bit per line: one half has arrived
};

}  // namespace torii::libfabric
