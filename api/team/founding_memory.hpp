// SPDX-License-Identifier: Apache-2.0
// This rank's memory for a team that is being made.
#pragma once

#include <cstdint>
#include <optional>

#include "api/agreement/member_memory.hpp"
#include "api/context/context.hpp"
#include "api/context/team_memory_pool.hpp"

namespace torii {

/// Gives the memory back unless it is released: no member puts into it before all members have made the team.
class FoundingMemory {
 public:
  explicit FoundingMemory(Context& context) : context_(context) {}
  ~FoundingMemory() {
    if (offset_) context_.team_memory().free(*offset_);
  }
  FoundingMemory(const FoundingMemory&) = delete;
  FoundingMemory& operator=(const FoundingMemory&) = delete;

  /// For a team of up to `ranks` ranks with so many channels. Throws Error{no_resource}.
  void take(int ranks, int channels) {
    try {
      offset_ = context_.team_memory().allocate(team_memory_bytes(ranks, channels, context_));
    } catch (const Error& error) {
      throw Error(error.status(), std::string("no memory for the team: ") + error.what());
    }
  }
  std::uint64_t offset() const noexcept { return offset_.value_or(0); }
  void release() noexcept { offset_.reset(); }

 private:
  Context& context_;
  std::optional<std::uint64_t> offset_;
};

}  // namespace torii
