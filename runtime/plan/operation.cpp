// SPDX-License-Identifier: Apache-2.0
// Names of collectives on command lines and in JSON.
#include "runtime/plan/operation.hpp"

#include <array>

namespace torii {
namespace {

constexpr std::array<std::string_view, kCollectiveCount> kCollectiveNames = {
    "barrier",  "broadcast", "reduce", "allreduce", "all_gather", "reduce_scatter",
    "alltoall", "scatter",   "gather", "scan",      "exscan"};

}  // namespace

std::string_view name(Collective collective) noexcept { return kCollectiveNames[static_cast<std::size_t>(collective)]; }

std::optional<Collective> parse_collective(std::string_view text) noexcept {
  for (std::size_t i = 0; i < kCollectiveNames.size(); ++i) {
    if (kCollectiveNames[i] == text) return static_cast<Collective>(i);
  }
  return std::nullopt;
}

}  // namespace torii
