// SPDX-License-Identifier: Apache-2.0
// Ranks of one node that agree on the team of survivors (api/agreement/node_survivors.hpp): all that come to a round
// have the team, or none.
#pragma once

#include <memory>
#include <vector>

#include "tests/exploration/explorer.hpp"

namespace torii::exploration {

/// One rank, which calls until it has a team or is left out.
struct Caller {
  int hasty_calls = 0;            ///< so many of its first calls give up at their first look
  bool refuses = false;           ///< its first call makes no sense
  std::vector<int> without = {};  ///< that it leaves out
  std::vector<int> lost = {};     ///< that another team has left out: no part of what is compared
};

std::unique_ptr<World> survivors(std::vector<Caller> callers);
/// Rank 0 opens rounds and fails each, so often that places are used again; rank 1 comes to one, and reads why.
std::unique_ptr<World> rounds_of_survivors();

}  // namespace torii::exploration
