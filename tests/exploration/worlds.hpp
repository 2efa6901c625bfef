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

std::vector<Listed> worlds();

}  // namespace torii::exploration
