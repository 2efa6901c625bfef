// SPDX-License-Identifier: Apache-2.0
// Looking for algorithms by name. The rows are listed in catalogue.txt, from which the build writes catalogue().
#include "collectives/selection/catalogue.hpp"

#include <vector>

namespace torii {

const Algorithm* find_algorithm(std::string_view name) noexcept {
  for (const Algorithm& algorithm : catalogue()) {
    if (algorithm.name == name) return &algorithm;
  }
  return nullptr;
}

std::span<const std::string_view> algorithm_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> result;
    for (const Algorithm& algorithm : catalogue()) result.push_back(algorithm.name);
    return result;
  }();
  return names;
}

}  // namespace torii
