// SPDX-License-Identifier: Apache-2.0
// The list of all algorithms. Where no table decides, the first that can serve a request does.
#include "collectives/selection/catalogue.hpp"

#include <array>

#include "collectives/algorithms/algorithms.hpp"

namespace torii {

std::span<const Algorithm> catalogue() noexcept {
  // Copied together at the first use, when the rows of all files are there.
  static const std::array kRows = {
      kTrinaryx3, kRing, kBucket, kRecursiveDoubling, kRabenseifner, kBinomial, kNode,     kSwing, kScheduled, kChain,
      kDirect,    kA2a,  kA2and,  kA2atPrinted,       kA2at,         kFloyd,    kMultilane};
  return kRows;
}

const Algorithm* find_algorithm(std::string_view name) noexcept {
  for (const Algorithm& algorithm : catalogue()) {
    if (algorithm.name == name) return &algorithm;
  }
  return nullptr;
}

}  // namespace torii
