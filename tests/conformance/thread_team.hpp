// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of one process over the public interface: they share one mapping, so ThreadSanitizer sees their
// races.
#pragma once

#include <torii/torii.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tools/collective_shape.hpp"

namespace torii::tests {

struct ThreadTeam {
  int ranks = 2;
  std::string settings;  ///< lines "NAME=value"
  std::string topology;
  std::string algorithm;
  std::string determinism;
  std::size_t segment_bytes = 0;
  std::vector<int> nodes = {};         ///< of each rank; none: all stand on one
  std::string refusal = {};            ///< not empty: the team is refused as unsupported, with this among the reasons
  void (*idle)(void* data) = nullptr;  ///< as of torii_context_options
};

/// Nodes of two ranks: both on one, and where there is a fabric to test also on two.
inline const std::vector<std::vector<int>> kPlacesOfTwo = {
    {},
#if defined(TORII_TEST_LIBFABRIC)
    {0, 1},
#endif
};

/// Runs `body(context, team)` on every rank, each a thread, and joins them. Reports failures of setup to GoogleTest.
void run_as_threads(const ThreadTeam& options, const std::function<void(torii_context*, torii_team*)>& body);

inline std::string last_error() { return torii_last_error(); }

/// What the team would run for the call.
std::string algorithm_of(torii_team* team, const torii_call& call);

}  // namespace torii::tests
