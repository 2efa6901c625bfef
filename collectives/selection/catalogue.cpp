// SPDX-License-Identifier: Apache-2.0
// Looking for algorithms by name. The rows are listed in catalogue.txt, from which the build writes catalogue() and
// algorithm_names().
#include "collectives/selection/catalogue.hpp"

namespace torii {

const Algorithm* find_algorithm(std::string_view name) noexcept {
  for (const Algorithm& algorithm : catalogue()) {
    if (algorithm.name == name) return &algorithm;
  }
  return nullptr;
}

}  // namespace torii
