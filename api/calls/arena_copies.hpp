// SPDX-License-Identifier: Apache-2.0
// Memory in the arena that requests borrow for copies of their input.
#pragma once

#include <cstddef>
#include <vector>

#include "api/context/context.hpp"

namespace torii {

/// Kept from call to call. Peers of the node reach it in place; if the arena has no more memory, it comes from the heap
/// and travels by value. Must not outlive the context. One thread at a time.
class ArenaCopies {
 public:
  explicit ArenaCopies(Context& context) noexcept : context_(context) {}
  ~ArenaCopies();
  ArenaCopies(const ArenaCopies&) = delete;
  ArenaCopies& operator=(const ArenaCopies&) = delete;

  /// At least `bytes`, uninitialised, until they are given back. Throws Error{no_resource}.
  std::byte* take(std::size_t bytes);
  /// nullptr: nothing.
  void give_back(const std::byte* address) noexcept;

 private:
  struct Block {
    std::byte* address = nullptr;
    std::size_t bytes = 0;
    bool is_taken = false;
    bool is_in_arena = true;
  };
  Block make(std::size_t bytes);
  void free(const Block& block) noexcept;

  Context& context_;
  std::vector<Block> blocks_;
};

}  // namespace torii
