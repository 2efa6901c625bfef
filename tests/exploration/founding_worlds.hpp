// SPDX-License-Identifier: Apache-2.0
// Ranks of one node that found teams over the board of rank 0 (api/agreement/node_founding.hpp): all have the team, or
// none has.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/exploration/explorer.hpp"

namespace torii::exploration {

/// One team that a rank founds, by as many calls as it takes.
struct FoundingCall {
  std::vector<int> members;
  bool refuses = false;       ///< its first call
  bool differs = false;       ///< its first call has another digest
  bool is_hasty = false;      ///< its first call gives up at its first look
  bool fails_object = false;  ///< in its first call the object cannot be made
  bool has_no_team = false;   ///< it is made once, and fails
  bool dies = false;          ///< the rank ends without the call
  bool dies_inside = false;   ///< the rank has entered the founding, and ends; not for the opener
};

/// The calls of each rank, all of one number. The board has so many entries.
std::unique_ptr<World> foundings(std::vector<std::vector<FoundingCall>> calls, int entries);

}  // namespace torii::exploration
