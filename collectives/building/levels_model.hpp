// SPDX-License-Identifier: Apache-2.0
// A cost model of one node whose ranks share caches in groups: what lines and copies cost within a group and between
// groups. The figures are assumed, not measured: they lie among those that are published for servers of 2020 to 2024.
#pragma once

#include <cstddef>

#include "runtime/plan/operation.hpp"

namespace torii {

struct LevelCosts {
  double near_line_ns = 50;      ///< until a rank sees a line that a rank of its group has written
  double far_line_ns = 120;      ///< the same from another group
  double near_GBps = 12;         ///< at which one rank copies from a cache of its group
  double far_GBps = 32;          ///< of all copies from other groups into one group together
  double package_line_ns = 220;  ///< from a group of another package
  double package_GBps = 100;     ///< of all copies from other packages into one package together
};

/// A call on a node of groups.
struct LevelCall {
  Collective collective = Collective::allreduce;
  double bytes = 0;  ///< of the vector; of all blocks together
  int groups = 1;
  int per_group = 1;
};

/// The time of a call whose ranks copy what they need from each other directly, whatever group has it (node).
double flat_time_s(const LevelCall& call, const LevelCosts& costs = {});

/// The time of the same call with the plans of levels.
double levels_time_s(const LevelCall& call, const LevelCosts& costs = {});

}  // namespace torii
