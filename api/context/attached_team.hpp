// SPDX-License-Identifier: Apache-2.0
// The interface through which a context sees a team.
#pragma once

#include <cstdint>
#include <memory>

namespace torii {

class AttachedTeam {
 public:
  /// Bytes that the engine has put for the team. From any thread.
  virtual std::uint64_t engine_bytes(int engine) const noexcept = 0;
  /// Moves the team's operations; true if one moved. Called only between Background::enter() and leave().
  virtual bool progress_in_background() noexcept = 0;
  /// A rank of the context is left out: the team fails if that is a member. Its memory then holds `writer`, until the
  /// rank writes there no more; false if there is no memory for that. From any thread.
  virtual bool lose(int context_rank, const std::shared_ptr<const void>& writer) noexcept = 0;
  /// Waits until what the members are told has left, a tenth of a second at the longest. From any thread.
  virtual void push_out() noexcept = 0;

 protected:
  ~AttachedTeam() = default;
};

}  // namespace torii
