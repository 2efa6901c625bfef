// SPDX-License-Identifier: Apache-2.0
// An engine's own memory, outside the arena: the words that peers greet with, and what payloads are copied to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/fabric/words.hpp"
#include "transports/libfabric/api.hpp"
#include "transports/libfabric/device.hpp"

namespace torii::libfabric {

/// In this order: the bell, which is a line that anybody may write into; a word for each rank; a line of zeros for
/// confirmed writes; bounce memory.
class OwnMemory {
 public:
  /// Maps it; pages are taken on first touch, or when a provider pins them. Throws Error{no_resource}.
  OwnMemory(int ranks, std::size_t bounce_bytes);
  ~OwnMemory();
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;

  /// Throws Error{transport}.
  void register_with(Device& device, fid_ep& endpoint);
  void deregister() noexcept { region_.reset(); }

  std::byte* bell() const noexcept { return base_; }
  const std::byte* zeros() const noexcept { return base_ + zeros_offset(); }
  std::span<std::byte> bounce() const noexcept {
    return {base_ + zeros_offset() + kLineBytes, bytes_ - zeros_offset() - kLineBytes};
  }
  /// The last word of a rank; 0: none.
  std::uint64_t greeting(int rank) const noexcept { return load_word(base_ + greeting_offset(rank)); }
  /// Where a rank writes its word: equal on all ranks.
  static std::size_t greeting_offset(int rank) noexcept {
    return kLineBytes + static_cast<std::size_t>(rank) * sizeof(std::uint64_t);
  }
  void* descriptor() const noexcept { return fi_mr_desc(region_.get()); }
  std::uint64_t key() const noexcept { return fi_mr_key(region_.get()); }

 private:
  std::size_t zeros_offset() const noexcept { return round_up(greeting_offset(ranks_), kLineBytes); }

  int ranks_;
  std::size_t bytes_;
  std::byte* base_;
  Fid<fid_mr> region_;
};

}  // namespace torii::libfabric
