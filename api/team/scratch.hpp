// SPDX-License-Identifier: Apache-2.0
// Memory in the arena for packed copies of a caller's data.
#pragma once

#include <cstddef>

#include "api/context/context.hpp"

namespace torii {

class Team;

/// Memory for packed copies, kept from call to call; it never shrinks. It is in the arena, so peers of the node reach
/// it in place. Must not outlive the context.
class Scratch {
 public:
  Scratch() = default;
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// At least `bytes` of uninitialised memory. If there is none, the team fails, because the other ranks wait for this
  /// one, and all report the same Error{no_resource}. `purpose` says in its text what the memory is for.
  std::byte* reserve(Team& team, std::size_t bytes, const char* purpose);
  /// Call after a failed call: peers may still store into the memory, so it stays allocated until the context ends.
  void abandon() noexcept {
    address_ = nullptr;
    bytes_ = 0;
  }

 private:
  Context* context_ = nullptr;
  std::byte* address_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace torii
