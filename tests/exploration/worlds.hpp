// SPDX-License-Identifier: Apache-2.0
// The list of worlds that are explored.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/exploration/explorer.hpp"

namespace torii::exploration {

struct Listed {
  std::string name;
  bool is_short = true;  ///< part of the short test
  std::function<std::unique_ptr<World>()> make;
};

/// All of them in a full run, else the short ones.
std::vector<Listed> worlds(bool full);
/// Ranks whose sleep ends by a ring alone.
std::unique_ptr<World> sleepers_without_time();

}  // namespace torii::exploration
