// SPDX-License-Identifier: Apache-2.0
// This rank's memory for a team that is being made.
#pragma once

#include <cstdint>
#include <optional>

#include "api/context/context.hpp"
#include "api/context/staging_pool.hpp"
#include "api/installation/staging_budget.hpp"

namespace torii {

/// Gives the memory back unless it is released: no member puts into it before all members have made the team.
class Staging {
 public:
  explicit Staging(Context& context) : context_(context) {}
  ~Staging() {
    if (offset_) context_.staging().free(*offset_);
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// For a team of up to `ranks` ranks. Throws Error{no_resource}.
  void take(int ranks) {
    try {
      offset_ = context_.staging().allocate(team_memory_bytes(ranks, context_));
    } catch (const Error& error) {
      throw Error(error.status(), std::string("no memory for the team's staging: ") + error.what());
    }
  }
  std::uint64_t offset() const noexcept { return offset_.value_or(0); }
  void release() noexcept { offset_.reset(); }

 private:
  Context& context_;
  std::optional<std::uint64_t> offset_;
};

}  // namespace torii
