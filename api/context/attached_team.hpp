// SPDX-License-Identifier: Apache-2.0
// The interface through which a context sees a team.
#pragma once

#include <cstdint>

namespace torii {

class AttachedTeam {
 public:
  /// Bytes that the engine has put for the team. From any thread.
  virtual std::uint64_t engine_bytes(int engine) const noexcept = 0;
  /// Moves the team's operations; true if one moved. Called only between Background::enter() and leave().
  virtual bool progress_in_background() noexcept = 0;

 protected:
  ~AttachedTeam() = default;
};

}  // namespace torii
